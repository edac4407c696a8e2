//go:build unix

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// While one of three servers is down and another one has lost a lock, no command says that the
// lock is free, and its lease can be broken and released.
func TestCommandsWhileUndecided(t *testing.T) {
	t.Parallel() // it mostly waits
	servers := redistest.StartN(t, 3)
	s := newSite(t, storeVar+"=redis://"+addresses(servers)+patiently)
	leases := map[string][]string{}
	for _, name := range []string{"x", "y", "z"} {
		leases[name] = strings.Fields(s.run(0, "acquire", name, "--ttl", "50s").out.String())
		poll(t, func() string { // a server that was connected late
			if n := strings.Count(s.run(0, "show", name).out.String(), ": taken by"); n < 3 {
				return "three servers to have the lease"
			}
			return ""
		})
		servers[0].Text(t, "DEL", name)
	}
	servers[2].Kill()
	owner, token := leases["x"][0], leases["x"][1]
	show := s.run(0, "show", "x").out.String()
	for _, part := range []string{"may be held by", owner, token, "in at most ", "no answer from " + servers[2].Addr() + " (unreachable)"} {
		if !strings.Contains(show, part) {
			t.Errorf("show: %s\nwant text with %q", show, part)
		}
	}
	var one struct {
		Held      bool
		Undecided []struct {
			Owner   string
			Token   json.Number
			Expires int `json:"expires_in_ms"`
		}
	}
	if err := json.Unmarshal([]byte(s.run(0, "show", "x", "--json").out.String()), &one); err != nil || one.Held || len(one.Undecided) != 1 ||
		one.Undecided[0].Owner != owner || one.Undecided[0].Token.String() != token || one.Undecided[0].Expires <= 0 {
		t.Errorf("show --json: %+v, %v, want the undecided lease", one, err)
	}
	s.run(124, "show", "x", "--exit-code", "--quiet")
	if p := s.run(0, "ls"); strings.Count(p.out.String(), "(may hold it)") != 3 || !strings.Contains(p.err.String(), "no answer from "+servers[2].Addr()) {
		t.Errorf("ls: stdout %q, stderr %q, want the three locks and the silent server", p.out.String(), p.err.String())
	}
	for _, bound := range []string{"0", "300ms"} {
		if p := s.run(124, "wait", "x", "--for", bound); !strings.Contains(p.err.String(), "may be held by") {
			t.Errorf("wait --for %s: %s, want text with %q", bound, p.err.String(), "may be held by")
		}
	}
	s.run(124, "break", "x", "--token", leases["y"][1], "--reason", "a mistake", "--now")
	p := s.start("break", "x", "--token", token, "--reason", "it hangs")
	p.says(&p.err, "cannot be renewed any more")
	if show := s.run(0, "show", "x").out.String(); !strings.Contains(show, "it was broken") || !strings.Contains(show, "this lease (token "+token+")") {
		t.Errorf("show: %s\nwant the break of this lease", show)
	}
	s.run(0, "break", "x", "--token", token, "--reason", "its host is gone", "--now")
	p.wants(0)
	s.run(0, "release", "y", "--owner", leases["y"][0])
	for _, name := range []string{"x", "y"} {
		s.run(0, "wait", name, "--for", "0")
		s.run(0, "run", name, "--try", "--", "true")
	}
	servers[1].Kill()
	if p := s.run(125, "break", "z", "--token", leases["z"][1], "--reason", "it hangs", "--now"); !strings.Contains(p.err.String(), servers[2].Addr()+": connection refused") {
		t.Errorf("break with one of three servers: %s, want text with %q", p.err.String(), servers[2].Addr()+": connection refused")
	}
}
