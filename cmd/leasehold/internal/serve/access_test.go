package serve_test

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
)

// logged is a log that a test can read.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// rightsFile writes a file of rights, and opens it.
func rightsFile(t *testing.T, clients ...m) (*rights.File, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rights.json")
	writeRights(t, path, clients...)
	f, err := rights.Open(path, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	return f, path
}

func writeRights(t *testing.T, path string, clients ...m) {
	t.Helper()
	b, err := json.Marshal(m{"clients": clients})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func client(name, token, prefix string, may ...string) m {
	return m{"name": name, "token_sha256": []string{hash(token)}, "rules": []m{{"prefix": prefix, "rights": may}}}
}

// A client may do what its rights say, to the names that they say, and nothing else. Each refusal
// and each break is in the audit, and no token is.
func TestRights(t *testing.T) {
	f, _ := rightsFile(t, client("ci", "ci-secret", "ci/", "look", "lock"), client("ops", "ops-secret", "", "look", "break"), client("none", "none-secret", ""))
	log := &logged{}
	url, s := start(t, serve.Options{Rights: f, Log: slog.New(slog.NewJSONHandler(log, nil))})
	owner := store.NewOwner()
	as := func(token, method, path string, body any) *reply {
		t.Helper()
		return ask(t, method, url, path, body, "Authorization", "Bearer "+token)
	}
	for _, c := range []struct {
		token, method, path string
		body                any
		want                string
	}{
		{"ci-secret", "POST", "/v1/locks/ci/a/acquire", m{"owner": owner, "purpose": "build"}, ""},
		{"ci-secret", "GET", "/v1/locks/ci/a", nil, ""},
		{"ci-secret", "POST", "/v1/locks/ci%2Fb/acquire", m{"owner": owner}, ""},
		{"ci-secret", "POST", "/v1/locks/ci/%2e%2e/prod/acquire", m{"owner": owner}, ""}, // a name that starts with ci/, byte by byte
		{"ci-secret", "POST", "/v1/locks/prod/acquire", m{"owner": owner}, httpapi.Forbidden},
		{"ci-secret", "POST", "/v1/locks/Ci/a/acquire", m{"owner": owner}, httpapi.Forbidden},
		{"ci-secret", "POST", "/v1/locks/%63%69/acquire", m{"owner": owner}, httpapi.Forbidden},
		{"ci-secret", "POST", "/v1/locks//ci/a/acquire", m{"owner": owner}, httpapi.Forbidden},
		{"ci-secret", "POST", "/v1/locks/./ci/a/acquire", m{"owner": owner}, httpapi.Invalid},
		{"ci-secret", "POST", "/v1/locks/ci/../prod/acquire", m{"owner": owner}, httpapi.Invalid},
		{"ci-secret", "POST", "/v1/locks/ci%00/acquire", m{"owner": owner}, httpapi.Forbidden},
		{"ci-secret", "POST", "/v1/locks/%EF%BD%83i/a/acquire", m{"owner": owner}, httpapi.Forbidden},
		{"ci-secret", "GET", "/v1/locks/prod", nil, httpapi.Forbidden},
		{"ci-secret", "POST", "/v1/locks/ci/a/break", m{"token": 1}, httpapi.Forbidden},
		{"ops-secret", "POST", "/v1/locks/ci/a/renew", m{"owner": owner}, httpapi.Forbidden},
		{"ops-secret", "POST", "/v1/locks/ci/a/release", m{"owner": owner}, httpapi.Forbidden},
		{"ops-secret", "POST", "/v1/locks/ci/a/hold", nil, httpapi.Forbidden},
		{"none-secret", "GET", "/v1/locks", nil, httpapi.Forbidden},
		{"", "GET", "/v1/locks", nil, httpapi.Unauthorized},
		{"ci-secret2", "GET", "/v1/locks", nil, httpapi.Unauthorized},
		{hash("ci-secret"), "GET", "/v1/locks", nil, httpapi.Unauthorized},
	} {
		if r := as(c.token, c.method, c.path, c.body); r.kind != c.want {
			t.Errorf("%s: %s %s: %d %s, want %q", c.token, c.method, c.path, r.status, r.text, c.want)
		}
	}
	if r := ask(t, "GET", url, "/v1/locks", nil); r.kind != httpapi.Unauthorized || r.header.Get("WWW-Authenticate") == "" {
		t.Errorf("without a token: %d %s", r.status, r.text)
	}
	if held := as("ops-secret", "GET", "/v1/locks/ci/a", nil); held.str("purpose") != "build (client ci)" {
		t.Errorf("the holder is shown as %s, want its purpose and the name of the client", held.text)
	}
	if n := len(as("ci-secret", "GET", "/v1/locks", nil).body["locks"].([]any)); n != 3 {
		t.Errorf("ci sees %d locks, want its 3", n)
	}
	s.Store.Acquire(t.Context(), store.AcquireRequest{Lease: store.Lease{Name: "prod", Owner: owner, TTL: time.Minute}})
	if n := len(as("ci-secret", "GET", "/v1/locks?prefix=", nil).body["locks"].([]any)); n != 3 {
		t.Errorf("ci sees %d locks, want its 3", n)
	}
	r := as("ci-secret", "POST", "/v1/renew", m{"leases": []m{{"name": "prod", "owner": owner}}})
	if !strings.Contains(string(r.text), "#forbidden") {
		t.Errorf("ci renews what is not its own: %s", r.text)
	}
	token := as("ops-secret", "GET", "/v1/locks/ci/a", nil).body["token"]
	if r := as("ops-secret", "POST", "/v1/locks/ci/a/break", m{"token": token, "reason": "stuck", "by": "root"}); r.status != 200 {
		t.Errorf("ops breaks: %d %s", r.status, r.text)
	}
	audit := log.String()
	for _, want := range []string{`"msg":"break","audit":true,"client":"ops"`, `"reason":"stuck"`, `"by":"ops (root)"`, `"msg":"refused a right"`, `"lock":"prod"`, `"msg":"refused an unknown client"`} {
		if !strings.Contains(audit, want) {
			t.Errorf("the audit lacks %s:\n%s", want, audit)
		}
	}
	if strings.Contains(audit, "secret") {
		t.Errorf("a token is in the log:\n%s", audit)
	}
}

// A file of rights that changes is in force without a restart, and a wrong one is not.
func TestRightsAreReloaded(t *testing.T) {
	f, path := rightsFile(t, client("ci", "old", "", "look"))
	url, _ := start(t, serve.Options{Rights: f})
	status := func(token string) int {
		return ask(t, "GET", url, "/v1/locks", nil, "Authorization", "Bearer "+token).status
	}
	if status("old") != 200 || status("new") != 401 {
		t.Fatal("the first file is not in force")
	}
	writeRights(t, path, client("ci", "new", "", "look"))
	eventually.True(t, "the new file is in force", func() bool { return status("new") == 200 && status("old") == 401 })
	if err := os.WriteFile(path, []byte(`{"clients": [`), 0o600); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if status("new") != 200 {
			t.Fatal("a file that is wrong took rights away")
		}
	}
}

// A read-only server changes nothing, whatever rights there are.
func TestReadOnly(t *testing.T) {
	f, _ := rightsFile(t, client("all", "x", "", "look", "lock", "break"))
	for _, o := range []serve.Options{{ReadOnly: true}, {ReadOnly: true, Rights: f}} {
		url, s := start(t, o)
		for _, call := range []string{"acquire", "hold", "renew", "release", "downgrade", "resize", "break"} {
			if r := ask(t, "POST", url, "/v1/locks/a/"+call, m{"owner": "o"}, "Authorization", "Bearer x"); r.kind != httpapi.Forbidden {
				t.Errorf("%s: %d %s, want forbidden", call, r.status, r.text)
			}
		}
		if r := ask(t, "GET", url, "/v1/locks", nil, "Authorization", "Bearer x"); r.status != 200 {
			t.Errorf("list: %d %s", r.status, r.text)
		}
		if all, err := s.Store.List(t.Context(), ""); err != nil || len(all) > 0 {
			t.Errorf("%v, %v, want no lock", all, err)
		}
	}
}

// A browser that another site leads here changes nothing, and a name of another host that leads
// here is not answered at all.
func TestCrossSite(t *testing.T) {
	url, s := start(t, serve.Options{Hosts: []string{"locks.example"}})
	for _, headers := range [][]string{
		{"Origin", "https://evil.example"},
		{"Origin", "null"},
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Origin", "http://evil.example", "Content-Type", "text/plain"},
		{"Host", "evil.example"},
		{"Host", "evil.example:7420", "Origin", "http://evil.example:7420", "Sec-Fetch-Site", "same-origin"},
		{"Host", "127.0.0.1.evil.example"},
		{"Host", "localhost.evil.example"},
	} {
		for _, call := range []string{"acquire", "hold", "break", "release"} {
			if r := ask(t, "POST", url, "/v1/locks/a/"+call, `{"owner":"o"}`, headers...); r.kind != httpapi.CrossSite {
				t.Errorf("%v: %s: %d %s, want cross-site", headers, call, r.status, r.text)
			}
		}
	}
	if r := ask(t, "GET", url, "/v1/locks", nil, "Host", "evil.example"); r.kind != httpapi.CrossSite {
		t.Errorf("the locks for another host: %d %s", r.status, r.text)
	}
	if r := ask(t, "GET", url, "/v1/locks", nil, "Origin", "https://evil.example"); r.header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("another site may read the locks")
	}
	if all, err := s.Store.List(t.Context(), ""); err != nil || len(all) > 0 {
		t.Errorf("%v, %v, want no lock", all, err)
	}
	host := strings.TrimPrefix(url, "http://")
	for _, headers := range [][]string{{"Origin", url, "Sec-Fetch-Site", "same-origin"}, {"Host", "localhost:1"}, {"Host", "locks.example"}, {"Host", "[::1]:7420"}, {"Host", host}} {
		if r := ask(t, "POST", url, "/v1/locks/a/acquire", `{"owner":"o"}`, headers...); r.status != 200 {
			t.Errorf("%v: %d %s, want the lock", headers, r.status, r.text)
		}
	}
}

// A client is held to its limits, and others are not.
func TestLimits(t *testing.T) {
	a := client("a", "a", "", "look", "lock")
	a["limits"] = m{"requests_per_second": 5, "streams": 2, "names": 1}
	b := client("b", "b", "", "look", "lock")
	b["limits"] = m{"streams": 2, "names": 1}
	f, _ := rightsFile(t, a, b)
	url, _ := start(t, serve.Options{Rights: f})
	var kinds []string
	for range 20 {
		kinds = append(kinds, ask(t, "GET", url, "/v1/locks", nil, "Authorization", "Bearer a").kind)
	}
	if kinds[0] != "" || !strings.Contains(strings.Join(kinds, " "), httpapi.TooMany) {
		t.Errorf("20 requests at once: %v, want some too many", kinds)
	}
	auth := []string{"Authorization", "Bearer b"}
	first := open(t, url, "/v1/locks/x/hold", nil, auth...)
	first.next()
	if r := ask(t, "POST", url, "/v1/locks/y/hold", nil, auth...); r.kind != httpapi.TooMany {
		t.Errorf("a hold of another name: %d %s, want too-many", r.status, r.text)
	}
	second := open(t, url, "/v1/locks/x/hold", nil, auth...)
	second.next()
	if r := ask(t, "POST", url, "/v1/locks/x/acquire", m{"owner": "o", "wait_ms": -1}, auth...); r.kind != httpapi.TooMany {
		t.Errorf("a third stream: %d %s, want too-many", r.status, r.text)
	}
	first.close()
	second.close()
	eventually.True(t, "the streams are over", func() bool {
		resp, err := http.DefaultClient.Do(request(t, "POST", url, "/v1/locks/y/hold", m{"wait_ms": 0}, auth...))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode == 200
	})
}

// A client certificate names the client as well as a token does, and a server that others can
// reach has both TLS and rights.
func TestCertificates(t *testing.T) {
	dir := t.TempDir()
	ca, caKey := certificate(t, "CN=authority", nil, nil)
	server, serverKey := certificate(t, "CN=server", ca, caKey)
	good, goodKey := certificate(t, "CN=ci,O=Example", ca, caKey)
	other, otherKey := certificate(t, "CN=other", ca, caKey)
	foreignCA, foreignKey := certificate(t, "CN=elsewhere", nil, nil)
	foreign, foreignLeafKey := certificate(t, "CN=ci,O=Example", foreignCA, foreignKey)
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key := func(k *ecdsa.PrivateKey) []byte {
		b, err := x509.MarshalPKCS8PrivateKey(k)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	at := serve.Listening{Address: "127.0.0.1:0", Cert: write("c.pem", "CERTIFICATE", server.Raw), Key: write("k.pem", "PRIVATE KEY", key(serverKey)), ClientCA: write("ca.pem", "CERTIFICATE", ca.Raw), Drain: time.Second}
	f, _ := rightsFile(t, m{"name": "ci", "subjects": []string{"CN=ci,O=Example"}, "rules": []m{{"prefix": "", "rights": []string{"look"}}}})
	_, s := start(t, serve.Options{Rights: f})
	l, err := s.Listen(at)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(t.Context(), l, at) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	door := at
	door.Redis = at.Address
	redis, err := s.ListenRedis(door)
	if err != nil {
		t.Fatal(err)
	}
	redisDone := make(chan error, 1)
	go func() { redisDone <- s.ServeRedis(t.Context(), redis, door) }()
	t.Cleanup(func() {
		if err := <-redisDone; err != nil {
			t.Error(err)
		}
	})
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	for name, c := range map[string]struct {
		cert *x509.Certificate
		key  *ecdsa.PrivateKey
		want int
	}{
		"the client":               {good, goodKey, 200},
		"another client":           {other, otherKey, 401},
		"no certificate":           {nil, nil, 401},
		"the name, by another one": {foreign, foreignLeafKey, 0},
	} {
		config := &tls.Config{RootCAs: pool}
		if c.cert != nil {
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return &tls.Certificate{Certificate: [][]byte{c.cert.Raw}, PrivateKey: c.key}, nil
			}
		}
		tr := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
		resp, err := (&http.Client{Transport: tr}).Get("https://" + l.Addr().String() + "/v1/locks")
		got := 0
		if err == nil {
			got = resp.StatusCode
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.ProtoMajor != 2 {
				t.Errorf("%s: %s, want HTTP/2", name, resp.Proto)
			}
		}
		tr.CloseIdleConnections()
		if got != c.want {
			t.Errorf("%s: status %d, %v, want %d", name, got, err, c.want)
		}
		answer := ""
		if nc, err := tls.Dial("tcp", redis.Addr().String(), config); err == nil {
			fmt.Fprint(nc, "*2\r\n$3\r\nGET\r\n$4\r\nlock\r\n")
			answer, _ = bufio.NewReader(io.LimitReader(nc, 5)).ReadString(0)
			nc.Close()
		}
		if want := map[int]string{200: "$-1\r\n", 401: "-NOAU", 0: ""}[c.want]; answer != want {
			t.Errorf("%s, over Redis' protocol: %q, want %q", name, answer, want)
		}
	}
	for name, c := range map[string]struct {
		s  *serve.Server
		at serve.Listening
	}{
		"no TLS":              {s, serve.Listening{Address: "0.0.0.0:0"}},
		"every interface":     {s, serve.Listening{Address: ":0"}},
		"a name":              {s, serve.Listening{Address: "example.com:0"}},
		"no rights":           {serve.New(serve.Options{Store: s.Store}), serve.Listening{Address: "0.0.0.0:0", Cert: at.Cert, Key: at.Key}},
		"a key alone":         {s, serve.Listening{Address: "127.0.0.1:0", Key: at.Key}},
		"authorities, no TLS": {s, serve.Listening{Address: "127.0.0.1:0", ClientCA: at.ClientCA}},
	} {
		if l, err := c.s.Listen(c.at); err == nil {
			l.Close()
			t.Errorf("%s: the server listens", name)
		}
		c.at.Redis = c.at.Address
		if l, err := c.s.ListenRedis(c.at); err == nil {
			l.Close()
			t.Errorf("%s: the server listens for clients of Redis", name)
		} else if c.at.Key == "" && c.at.ClientCA == "" && !strings.Contains(err.Error(), "--redis") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// certificate makes a certificate of a subject such as CN=x,O=y, signed by parent or by itself.
func certificate(t *testing.T, subject string, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true, IsCA: parent == nil, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	for part := range strings.SplitSeq(subject, ",") {
		k, v, _ := strings.Cut(part, "=")
		if k == "CN" {
			c.Subject.CommonName = v
		} else {
			c.Subject.Organization = []string{v}
		}
	}
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return parsed, key
}
