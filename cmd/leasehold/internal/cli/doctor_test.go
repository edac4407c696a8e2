//go:build unix

package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/doctor"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// findings are what "doctor --json" prints.
type findings struct {
	Findings []map[string]string `json:"findings"`
}

func (s *site) doctor(code int, args ...string) (codes map[string]string, said string) {
	s.t.Helper()
	said = s.run(code, append([]string{"doctor", "--json"}, args...)...).out.String()
	var f findings
	if err := json.Unmarshal([]byte(said), &f); err != nil || f.Findings == nil {
		s.t.Fatalf("%v: %s, want findings", err, said)
	}
	codes = map[string]string{}
	for _, one := range f.Findings {
		for _, key := range []string{"severity", "code", "message", "advice"} {
			if one[key] == "" {
				s.t.Errorf("no %s: %v, want one", key, one)
			}
		}
		if _, there := one["node"]; !there || len(one) != 5 {
			s.t.Errorf("a finding is %v, want a node and four other keys", one)
		}
		codes[one["code"]] = one["severity"]
	}
	return codes, said
}

// The exit code is that of the worst finding.
func TestDoctorExitCodes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	sure := []string{"--appendonly", "yes", "--appendfsync", "always"}
	good := redistest.Start(t, sure...)
	if codes, said := s.doctor(0, "--store", good.URL()); len(codes) != 0 || strings.TrimSpace(said) != "{\n  \"findings\": []\n}" {
		t.Errorf("%s, want an empty list of findings", said)
	}
	if out := s.run(0, "doctor", "--store", good.URL()).out.String(); out != "No problems found.\n" {
		t.Errorf("%q, want \"No problems found.\"", out)
	}
	if codes, _ := s.doctor(0, "--store", "memory:"); codes["memory-of-one-process"] != "info" {
		t.Errorf("%v, want the finding memory-of-one-process (info)", codes)
	}
	pair := redistest.StartN(t, 2, sure...)
	two := "redis://" + addresses(pair)
	if codes, _ := s.doctor(1, "--store", two); codes["even-nodes"] != "warning" {
		t.Errorf("%v, want the finding even-nodes (warning)", codes)
	}
	good.Kill()
	if codes, _ := s.doctor(2, "--store", good.URL()); codes["node-unreachable"] != "error" {
		t.Errorf("%v, want the finding node-unreachable (error)", codes)
	}
	if p := s.run(2, "doctor", "--store", good.URL(), "--quiet"); p.out.String()+p.err.String() != "" {
		t.Errorf("stdout %q, stderr %q, want nothing on stderr", p.out.String(), p.err.String())
	}
}

// The text groups the findings by code, the worst first.
func TestDoctorText(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s := newSite(t, storeVar+"=redis://"+addresses(servers)+patiently)
	servers[1].Kill()
	out := s.run(1, "doctor").out.String()
	down, host, none := strings.Index(out, "warning: node-unreachable\n  "+servers[1].Addr()+": "), strings.Index(out, "warning: same-host\n"), strings.Index(out, "info: persistence-none\n")
	if down < 0 || host < down || none < host || strings.Count(out, "persistence-none") != 1 || strings.Count(out, "appendfsync always") != 1 || !strings.HasSuffix(out, "\n2 warnings\n") {
		t.Error(out)
	}
	if p := s.run(0, "show", "leasehold-doctor"); !strings.Contains(p.out.String(), "nobody") {
		t.Errorf("stdout %s, want text with %q", p.out.String(), "nobody")
	}
}

func TestDoctorOfFiles(t *testing.T) {
	s := newSite(t)
	if codes, said := s.doctor(0); codes["file-missing"] != "info" || !strings.Contains(said, s.home) {
		t.Errorf("%s, want the finding file-missing (info) and text with %q", said, s.home)
	}
	if left, err := os.ReadDir(s.home); err != nil || len(left) > 0 {
		t.Errorf("the home directory has %v (%v), want nothing", left, err)
	}
	s.run(0, "run", "x", "--", "true")
	if codes, said := s.doctor(0); len(codes) != 0 {
		t.Errorf("%s, want no findings", said)
	}
	path := filepath.Join(s.home, ".local/state/leasehold/locks")
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if codes, said := s.doctor(2); codes["file-exposed"] != "error" {
		t.Errorf("%s, want the finding file-exposed (error)", said)
	}
	if codes, said := s.doctor(0, "--store", "file:"+path+"?shared=true"); codes["file-shared"] != "info" {
		t.Errorf("%s, want the finding file-shared (info)", said)
	}
	if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, nil, 0o600)); err != nil { // a file in its place
		t.Fatal(err)
	}
	if codes, said := s.doctor(2); codes["file-unusable"] != "error" {
		t.Errorf("%s, want the finding file-unusable (error)", said)
	}
}

// With --prefix, the rights of the user and the keys of others are examined only among the
// locks with that prefix.
func TestDoctorOfSomeLocks(t *testing.T) {
	server := redistest.Start(t)
	server.Text(t, "SET", "jobs/a", "x")
	server.Text(t, "ACL", "SETUSER", "u", "on", ">s3cret", "~jobs/*", "~{jobs/*}:*", "+@all")
	s := newSite(t, storeVar+"=redis://u:s3cret@"+server.Addr()+"?max_ttl=1m")
	if codes, said := s.doctor(2); codes["key-forbidden"] != "error" || codes["lock-without-ttl"] != "" || strings.Contains(said, "s3cret") {
		t.Errorf("%s, want the finding key-forbidden (error), no finding lock-without-ttl and no %q", said, "s3cret")
	}
	if codes, said := s.doctor(2, "--prefix", "jobs/"); codes["key-forbidden"] != "" || codes["lock-without-ttl"] != "error" {
		t.Errorf("%s, want no finding key-forbidden and the finding lock-without-ttl (error)", said)
	}
	if codes, _ := s.doctor(2, "--ttl", "2m"); codes["ttl-over-maximum"] != "error" {
		t.Errorf("%v, want the finding ttl-over-maximum (error)", codes)
	}
	if keys := server.Keys(t); len(keys) != 1 {
		t.Errorf("keys %q, want only the one of before", keys)
	}
}

func TestDoctorShowsNoPassword(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--requirepass", "right-secret").Addr()
	for _, url := range []string{"redis://:wrong-secret@" + server, "redis://:right-secret@" + server, "redis://:wrong-secret@127.0.0.1:1", "redis://" + server} {
		for _, how := range [][]string{{"doctor"}, {"doctor", "--json"}, {"doctor", "--verbose"}} {
			p := newSite(t, storeVar+"="+url).start(how...)
			if code := p.end(); code == codeTrouble || strings.Contains(p.out.String()+p.err.String(), "secret") {
				t.Errorf("%s %q: exit code %d: %s%s, want findings, without the password", url, how, code, p.out.String(), p.err.String())
			}
		}
	}
	for _, url := range []string{"redis://:wrong-secret@" + server + "?bogus=1", "redis://:wrong/secret@" + server, "nope://:secret@" + server} {
		if p := newSite(t, storeVar+"="+url).run(codeTrouble, "doctor", "--json"); strings.Contains(p.out.String()+p.err.String(), "secret") || p.out.String() != "" {
			t.Errorf("%s: %s%s, want no %q and nothing on stdout", url, p.out.String(), p.err.String(), "secret")
		}
	}
}

func TestEveryStoreHasADoctor(t *testing.T) {
	for _, s := range schemes {
		if examiners[s.names[0]] == nil {
			t.Errorf("doctor has no examiner of %s stores, want one", s.names[0])
		}
	}
}

// A server may say anything; what is printed is harmless.
func TestFindingsAreSafe(t *testing.T) {
	var b strings.Builder
	fs := []doctor.Finding{{Severity: doctor.Error, Code: doctor.LoginRefused, Node: "a\x1b[2J", Message: oneLine("no\r\n\x1b[31m redis://u:secret@h"), Advice: "do"}}
	if err := writeFindings(&b, fs, false); err != nil {
		t.Fatal(err)
	}
	if out := b.String(); strings.ContainsAny(out, "\x1b\r") || strings.Contains(out, "secret") || strings.Count(out, "\n") != 5 {
		t.Errorf("%q, want no control characters and no password", out)
	}
}

func TestDoctorUsage(t *testing.T) {
	s := newSite(t)
	for args, says := range map[string]string{
		"doctor x":          "no arguments",
		"doctor --ttl 1us":  "too short",
		"doctor --ttl soon": "--ttl",
		"acl x":             "no arguments",
		"acl --for sleep":   "lock, show, ls, doctor",
		"acl --for=":        "empty",
		"acl --db -1":       "database",
		"acl --user=":       "is no user name",
		"doctor --store redis://a --store-file x": "exclude each other",
	} {
		if p := s.run(codeTrouble, strings.Fields(args)...); !strings.Contains(p.err.String(), says) || p.out.String() != "" {
			t.Errorf("%s: %s%s, want text with %q and nothing on stdout", args, p.out.String(), p.err.String(), says)
		}
	}
	for _, c := range []string{"doctor", "acl"} {
		if out := s.run(0, c, "--help").out.String(); !strings.Contains(out, "Examples:\n  leasehold "+c) {
			t.Errorf("%s has no example:\n%s, want text with %q", c, out, "Examples:\n  leasehold "+c)
		}
	}
}
