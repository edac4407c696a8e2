//go:build unix

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// readBench reads what "bench --json" has printed.
func readBench(t *testing.T, p *proc) benchJSON {
	t.Helper()
	var b benchJSON
	d := json.NewDecoder(strings.NewReader(p.out.String()))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		t.Fatalf("%v: %s", err, p.out.String())
	}
	return b
}

func TestBench(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s := newSite(t, storeVar+"=redis://"+addresses(servers)+patiently)
	p := s.run(0, "bench", "--for", "500ms", "--goroutines", "16,1,16")
	lines := strings.Split(strings.TrimSpace(p.out.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "LOCK+UNLOCK/S") || strings.Fields(lines[1])[0] != "1" || strings.Fields(lines[2])[0] != "16" {
		t.Errorf("stdout: %s, want a table with a header and two lines", p.out.String())
	}
	if !strings.Contains(p.err.String(), "leasehold: round 5 of 5: 1 goroutine ") {
		t.Errorf("the progress: %s, want text with %q", p.err.String(), "leasehold: round 5 of 5: 1 goroutine ")
	}
	if p := s.run(0, "ls", benchPrefix, "--json"); strings.TrimSpace(p.out.String()) != "[]" {
		t.Errorf("locks %s are left, want none", p.out.String())
	}

	p = s.run(0, "bench", "--for", "500ms", "--goroutines", "4", "--ttl", "5s", "--json", "--quiet")
	b := readBench(t, p)
	if b.Engine != "redis" || b.Nodes != 3 || b.Quorum != 2 || b.TTL != 5000 || b.For != 500 || len(b.Results) != 1 {
		t.Fatalf("%+v, want the settings of the run and one result", b)
	}
	r := b.Results[0]
	if r.Goroutines != 4 || r.Rounds != 5 || r.Errors != 0 || r.Operations == 0 || r.PerSecond <= 0 || r.LockP50 <= 0 || r.LockP99 < r.LockP50 ||
		r.UnlockP50 <= 0 || r.UnlockP99 < r.UnlockP50 || r.ClientCPU <= 0 || r.Allocs <= 0 {
		t.Errorf("%+v, want 4 goroutines, 5 rounds, no errors, and positive numbers", r)
	}
	if p.err.String() != "" {
		t.Errorf("with --quiet: stderr %s, want nothing on it", p.err.String())
	}
	// Its count is that of the servers: a token for every operation.
	if seen := servers[0].Text(t, "INFO", "commandstats"); !strings.Contains(seen, "cmdstat_evalsha:calls=") {
		t.Errorf("the commands that the server has counted: %s, want text with %q", seen, "cmdstat_evalsha:calls=")
	}
}

func TestBenchOfTheDefaultStore(t *testing.T) {
	s := newSite(t)
	if b := readBench(t, s.run(0, "bench", "--for", "1s", "--goroutines", "2", "--json")); b.Engine != "files" || b.Results[0].Operations == 0 {
		t.Errorf("%+v, want operations on files", b)
	}
}

// If the store fails, what was measured before is printed.
func TestBenchFails(t *testing.T) {
	t.Parallel() // it mostly waits
	servers := redistest.StartN(t, 3)
	s := newSite(t, storeVar+"=redis://"+addresses(servers)+"?max_ttl=1m")
	p := s.run(125, "bench", "--ttl", "2m", "--for", "200ms", "--json")
	if b := readBench(t, p); !strings.Contains(b.Results[0].Error, "1m0s") || b.Results[0].Operations != 0 || b.Results[0].Errors == 0 {
		t.Errorf("%+v, want errors that name 1m0s, and no operations", b)
	}
	if !strings.Contains(p.err.String(), "1m0s") {
		t.Errorf("stderr %s, want the store's maximum, %q", p.err.String(), "1m0s")
	}
	p = s.start("bench", "--for", "2s", "--goroutines", "2")
	p.says(&p.err, "round 1 of 5")
	servers[0].Kill()
	servers[1].Kill()
	p.wants(0)
	if !strings.Contains(p.out.String(), "ERRORS") || !strings.Contains(p.err.String(), "operations failed; the first: ") {
		t.Errorf("stdout: %s\nstderr: %s, want text with %q and %q", p.out.String(), p.err.String(), "ERRORS", "operations failed; the first: ")
	}
	servers[2].Kill()
	s.run(125, "bench", "--for", "200ms")
}

func TestBenchOnATerminal(t *testing.T) {
	s := newSite(t)
	m := s.onTerminal("bench", "--for", "1s", "--goroutines", "1,2")
	m.wants(0)
	<-m.ended
	shown := m.shown.String()
	first, _, _ := strings.Cut(shown, "\n")
	if !strings.Contains(first, "round 5 of 5: ") || !strings.Contains(shown, "\r\x1b[K") {
		t.Errorf("the progress: %q, want one line that is removed at the end, with text with %q and %q", shown, "round 5 of 5: ", "\r\x1b[K")
	}
}
