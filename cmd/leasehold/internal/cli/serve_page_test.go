//go:build unix

package cli

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/browser"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// serving returns the address at which a server says that it serves.
func serving(p *proc) string {
	p.t.Helper()
	p.says(&p.err, "serving locks at ")
	return strings.TrimSuffix(regexp.MustCompile(`serving locks at (\S+)`).FindStringSubmatch(p.err.String())[1], "/")
}

// An operator with a token breaks a lock on the page of the built command, whose holder then
// stops. A client without the token sees nothing.
func TestServedPage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	rights := filepath.Join(s.home, "rights.json")
	token := "the-token-of-an-operator"
	text := fmt.Sprintf(`{"clients": [{"name": "alice", "token_sha256": ["%x"], "rules": [{"prefix": "", "rights": ["look", "break"]}]}]}`, sha256.Sum256([]byte(token)))
	if err := os.WriteFile(rights, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server := s.start("serve", "--listen", "127.0.0.1:0", "--prefix", "/locks", "--rights", rights)
	url := serving(server)
	answer, err := http.Get(url + "/")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized || !strings.Contains(strings.Join(answer.Header.Values("WWW-Authenticate"), ","), "Basic ") {
		t.Errorf("without a token: %s, %v", answer.Status, answer.Header)
	}

	holder := s.hold("deploy/api", "--purpose", "an upgrade", "--ttl", "20s", "--grace", "1s")
	w := browser.Start(t).Open(t, true)
	w.Go(strings.Replace(url, "http://", "http://any:"+token+"@", 1) + "/")
	if got := w.Text("main"); !strings.Contains(got, "deploy/api") || !strings.Contains(got, "an upgrade") {
		t.Fatalf("the page shows %s", got)
	}
	w.Click(".locks tbody a")
	w.Click("details.break summary")
	w.Type("input[name=reason]", "it hangs")
	w.Click("details.break button")
	w.Click("button.danger")
	poll(t, func() string {
		if text := w.Text("main"); strings.Contains(text, "The lease is ") {
			return ""
		}
		return "the page to say what came of the break: " + w.Text("body")
	})
	holder.in.Close()
	if code := holder.end(); code != 123 && code != 0 { // lost, unless its end came first
		t.Errorf("the holder ended with %d: %s", code, holder.err.String())
	}
	poll(t, func() string {
		if text := w.Text("#lock"); strings.Contains(text, "by alice") && strings.Contains(text, "Nobody holds it") {
			return ""
		}
		return "the page to show who broke the lease, and that the lock is free: " + w.Text("#lock")
	})
	for _, c := range w.Complaints() {
		t.Errorf("the browser complains: %s", c)
	}
	server.says(&server.err, `"audit":true`)
	server.signal(syscall.SIGTERM)
	server.wants(128 + 15)
}

// The examples for systemd and Kubernetes start a server that becomes ready.
func TestPackagedServers(t *testing.T) {
	t.Parallel()
	root := "../../../.."
	unit := filepath.Join(root, "packaging/systemd/leasehold-serve-example.service")
	for path, command := range map[string]*regexp.Regexp{
		unit: regexp.MustCompile(`(?m)^ExecStart=/usr/bin/leasehold (.*)$`),
		filepath.Join(root, "packaging/kubernetes/serve.yaml"):   regexp.MustCompile(`(?m)^ *args: \[(.*)\]$`),
		filepath.Join(root, "packaging/kubernetes/sidecar.yaml"): regexp.MustCompile(`(?m)^ *args: \[(.*)\]$`),
	} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s := newSite(t)
			cert, key := redistest.SelfSigned(t, s.home)
			rights := filepath.Join(s.home, "rights.json")
			token := strings.Repeat("0", 64)
			if err := os.WriteFile(rights, []byte(`{"clients": [{"name": "operators", "token_sha256": ["`+token+`"], "rules": [{"prefix": "", "rights": ["look", "lock", "break"]}]}]}`), 0o600); err != nil {
				t.Fatal(err)
			}
			m := command.FindSubmatch(b)
			if m == nil {
				t.Fatalf("%s starts nothing", path)
			}
			var args []string
			for word := range strings.FieldsSeq(strings.NewReplacer(",", " ", `"`, "").Replace(string(m[1]))) {
				switch {
				case strings.HasSuffix(word, ":7420"):
					word = "127.0.0.1:0"
				case strings.HasSuffix(word, "rights.json"):
					word = rights
				case strings.HasSuffix(word, "cert.pem"), strings.HasSuffix(word, "tls.crt"):
					word = cert
				case strings.HasSuffix(word, "key.pem"), strings.HasSuffix(word, "tls.key"):
					word = key
				}
				args = append(args, word)
			}
			p := s.start(args...)
			url := serving(p)
			pool := x509.NewCertPool()
			pem, err := os.ReadFile(cert)
			if err != nil || !pool.AppendCertsFromPEM(pem) {
				t.Fatal(err)
			}
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
			defer client.CloseIdleConnections()
			for _, probe := range []string{"/healthz", "/readyz"} {
				answer, err := client.Get(url + probe)
				if err != nil {
					t.Fatal(err)
				}
				answer.Body.Close()
				if answer.StatusCode != http.StatusOK {
					t.Errorf("%s: %s", probe, answer.Status)
				}
			}
			if strings.HasPrefix(url, "http://") { // the probe of the sidecar
				s.run(0, "ls", "--quiet", "--store", url, "startup-probe/")
			}
			client.CloseIdleConnections()
			p.signal(syscall.SIGTERM)
			p.wants(128 + 15)
		})
	}
	if _, err := exec.LookPath("systemd-analyze"); err == nil {
		b, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		here := filepath.Join(t.TempDir(), filepath.Base(unit))
		if err := os.WriteFile(here, []byte(strings.ReplaceAll(string(b), "/usr/bin/leasehold", binary)), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("systemd-analyze", "verify", "--man=no", here).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("systemd refuses the unit: %v: %s", err, out)
		}
	}
}
