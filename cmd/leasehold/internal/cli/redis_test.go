//go:build unix

package cli

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// patiently gives servers as long as a busy machine may need to answer.
const patiently = "?node_timeout=5s&connect_timeout=20s"

func addresses(servers []*redistest.Server) string {
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	return strings.Join(addrs, ",")
}

func TestNoMessageShowsAPassword(t *testing.T) {
	t.Parallel() // it mostly waits
	server := redistest.Start(t, "--requirepass", "right-secret").Addr()
	s := newSite(t)
	for _, c := range []struct{ url, says string }{
		{"redis://:wrong-secret@" + server, server},
		{"redis://" + server, server},
		{"redis://:wrong-secret@127.0.0.1:1", "127.0.0.1:1"},
		{"redis://:wrong-secret@" + server + "?bogus=1", "bogus"},
		{"redis://:wrong-secret@" + server + "/nodb", "nodb"},
		{"redis://:wrong-secret@a:b:c", "host:port"},
		{"redis://:wrong/secret@" + server, "%2F"},
		{"nope://:wrong-secret@" + server, "nope"},
		{"redis//:wrong-secret@" + server, "no URL of a store"},
	} {
		for _, how := range [][]string{{"run", "x", "--", "true"}, {"run", "x", "--verbose", "--", "true"}, {"ls"}, {"show", "x"}} {
			for _, inArgs := range []bool{false, true} {
				at, args := s, how
				if inArgs {
					args = append([]string{"--store", c.url}, how...)
				} else {
					at = &site{t: t, env: append(s.env[:len(s.env):len(s.env)], storeVar+"="+c.url)}
				}
				p := at.run(125, args...)
				if said := p.out.String() + p.err.String(); strings.Contains(said, "secret") || !strings.Contains(said, c.says) {
					t.Errorf("%s %q: %s, want no %q and text with %q", c.url, how, said, "secret", c.says)
				}
			}
		}
	}
	at := &site{t: t, env: append(s.env, storeVar+"=redis://:right-secret@"+server)}
	if p := at.run(0, "run", "x", "--verbose", "--", "true"); strings.Contains(p.err.String(), "secret") {
		t.Errorf("stderr %s, want no %q", p.err.String(), "secret")
	}
	if p := s.run(0, "--store", "redis://:right-secret@"+server, "run", "x", "--", "true"); !strings.Contains(p.err.String(), "all users of this machine") || strings.Contains(p.err.String(), "right") {
		t.Errorf("a password among the arguments is not warned of: %s, want text with %q and no %q", p.err.String(), "all users of this machine", "right")
	}
}

// A wait says once why each server cannot be used: in a warning when that happens, and not again with
// the reason of the wait or at its end.
func TestWaitNamesEachServerOnce(t *testing.T) {
	t.Parallel() // it mostly waits
	servers := redistest.StartN(t, 3)
	s := newSite(t, storeVar+"=redis://"+addresses(servers)+patiently)
	h := s.hold("x", "--ttl", "1m")
	defer h.let()
	p := s.start("run", "x", "--wait", "15s", "--", "true")
	p.says(&p.err, "next in the queue")
	servers[1].Kill()
	servers[2].Kill()
	p.wants(125)
	said := p.err.String()
	for _, gone := range servers[1:] {
		if n := strings.Count(said, gone.Addr()); n != 1 {
			t.Errorf("%s is named %d times, want once:\n%s", gone.Addr(), n, said)
		}
	}
	for _, part := range []string{"; 1 of 3 servers answered, 2 are needed\n", `gave up after 15s: acquire "x": 1 of 3 servers answered, 2 are needed: ` + servers[0].Addr() + ": taken by "} {
		if !strings.Contains(said, part) {
			t.Errorf("stderr %s, want text with %q", said, part)
		}
	}
}

// Looks with a wrong list, and a run that fails, take no server away from those that use it alone.
func TestLooksBesideAHolder(t *testing.T) {
	servers := redistest.StartN(t, 3)
	for _, s := range servers {
		s.Text(t, "DEL", redistest.Mark)
	}
	alone := newSite(t, storeVar+"=redis://"+servers[0].Addr())
	h := alone.hold("x", "--ttl", "10s")
	keys := func() string {
		return strings.Join(servers[0].Keys(t), " ") + servers[0].Text(t, "EXISTS", redistest.Mark)
	}
	before := keys()
	several := newSite(t, storeVar+"=redis://"+addresses(servers)+patiently)
	several.run(0, "ls")
	several.run(0, "show", "x")
	if p := several.run(125, "run", "x", "--try", "--", "true"); !strings.Contains(p.err.String(), "in use alone") {
		t.Errorf("run with a list of three: %s, want text with %q", p.err.String(), "in use alone")
	}
	servers[1].Kill()
	two := newSite(t, storeVar+"=redis://"+addresses(servers[:2])+patiently)
	for _, args := range []string{"ls", "show x", "wait x --for 1s", "watch x", "run x --try -- true", "run x --wait 1s -- true"} {
		two.run(125, strings.Fields(args)...)
	}
	if after := keys(); after != before {
		t.Errorf("the server has %q, and had %q before the looks", after, before)
	}
	alone.run(124, "run", "x", "--try", "--", "true")
	h.let()
	alone.run(0, "run", "x", "--try", "--", "true")
}
