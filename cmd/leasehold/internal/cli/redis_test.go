//go:build unix

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/statejson"
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

func TestRedisOneNode(t *testing.T) {
	servers := redistest.StartN(t, 1)
	s := newSite(t, storeVar+"=redis://"+addresses(servers)+"?max_ttl=1m")
	h := s.hold("x")
	s.run(124, "run", "x", "--try", "--", "true")
	if out := s.run(0, "ls", "--json").out.String(); !strings.Contains(out, `"name": "x"`) || strings.Contains(out, "nodes") {
		t.Errorf("stdout %s, want text with %q and no %q", out, `"name": "x"`, "nodes")
	}
	h.let()
	s.run(0, "run", "x", "--try", "--", "true")
	if p := s.run(125, "run", "x", "--ttl", "2m", "--", "true"); !strings.Contains(p.err.String(), "1m0s") {
		t.Errorf("the store's maximum is not named: %s, want text with %q", p.err.String(), "1m0s")
	}
}

func TestRedisThreeNodes(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s := newSite(t, storeVar+"=redis://"+addresses(servers)+patiently)
	h := s.hold("x")
	s.run(124, "run", "x", "--try", "--", "true")
	one := statejson.State{Lease: &statejson.Lease{}}
	if err := json.Unmarshal([]byte(s.run(0, "show", "x", "--json").out.String()), &one); err != nil || !one.Held || len(one.Nodes) != 3 || one.Nodes[2].Outcome != "taken" || one.Nodes[2].Owner != one.Owner {
		t.Errorf("%+v, %v, want it held on three nodes by one owner", one, err)
	}
	servers[0].Kill()
	out := s.run(0, "show", "x").out.String()
	if !strings.Contains(out, servers[0].Addr()+": connection refused") || !strings.Contains(out, servers[1].Addr()+": taken") {
		t.Errorf("stdout %s, want text with %q and %q", out, servers[0].Addr()+": connection refused", servers[1].Addr()+": taken")
	}
	h.let()
	s.run(0, "run", "x", "--try", "--", "true")
	servers[1].Kill()
	if p := s.run(125, "run", "x", "--", "true"); !strings.Contains(p.err.String(), "1 of 3 servers answered, 2 are needed") {
		t.Errorf("stderr %s, want text with %q", p.err.String(), "1 of 3 servers answered, 2 are needed")
	}
}

func TestRedisWarnings(t *testing.T) {
	servers := redistest.StartN(t, 2)
	s := newSite(t, storeVar+"=redis://"+addresses(servers)+patiently)
	if p := s.run(0, "run", "x", "--", "echo", "out"); !strings.Contains(p.err.String(), "leasehold: warning: an even number") || p.out.String() != "out\n" {
		t.Errorf("stdout %q, stderr %q, want text with %q and %q", p.out.String(), p.err.String(), "leasehold: warning: an even number", "out\n")
	}
	if p := s.run(0, "run", "x", "--quiet", "--", "true"); p.err.String() != "" {
		t.Errorf("stderr %q, want nothing on stderr", p.err.String())
	}
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

// New servers keep quarantine until an operator declares them new, or the longest TTL is
// over. Meanwhile waiters are told how long it lasts.
func TestRedisBootstrap(t *testing.T) {
	servers := redistest.StartN(t, 3)
	for _, s := range servers {
		s.Text(t, "DEL", redistest.Mark)
	}
	s := newSite(t, storeVar+"=redis://"+addresses(servers)+patiently)
	p := s.run(125, "run", "x", "--try", "--", "true")
	if !strings.Contains(p.err.String(), "quarantined") || !strings.Contains(p.err.String(), "takes part again in") {
		t.Errorf("not waiting: %s, want text with %q and %q", p.err.String(), "quarantined", "takes part again in")
	}
	p = s.run(125, "run", "x", "--wait", "100ms", "--", "true")
	if !strings.Contains(p.err.String(), "nodes are in quarantine for") || !strings.Contains(p.err.String(), "leasehold bootstrap") {
		t.Errorf("waiting: %s, want text with %q and %q", p.err.String(), "nodes are in quarantine for", "leasehold bootstrap")
	}
	lines := strings.Split(strings.TrimSpace(p.err.String()), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, `leasehold: gave up after 100ms: acquire "x"`) || strings.Contains(p.err.String(), "deadline exceeded") {
		t.Errorf("the end of a wait in trouble is no line by itself: %q, want %q at the beginning and no %q", lines, `leasehold: gave up after 100ms: acquire "x"`, "deadline exceeded")
	}
	if out := s.run(0, "show", "x").out.String(); strings.Count(out, ": quarantined") != 3 {
		t.Errorf("show: %s, want three nodes in quarantine", out)
	}
	var declared []declaredJSON
	p = s.run(0, "bootstrap", "--json")
	if p.err.String() != "" {
		t.Errorf("a warning of what it ends: %s, want nothing on stderr", p.err.String())
	}
	if err := json.Unmarshal([]byte(p.out.String()), &declared); err != nil || len(declared) != 3 || declared[0].RunID == "" {
		t.Errorf("%v, %v, want three declared nodes", declared, err)
	}
	s.run(0, "run", "x", "--try", "--", "true")
	h := s.hold("x")
	if p := s.run(125, "bootstrap"); !strings.Contains(p.err.String(), "--force") || !strings.Contains(p.err.String(), `"x"`) {
		t.Errorf("while a lock is held: %s, want text with %q and %q", p.err.String(), "--force", `"x"`)
	}
	if out := s.run(0, "bootstrap", "--force").out.String(); strings.Count(out, "\n") != 3 {
		t.Errorf("bootstrap --force: %s, want three lines", out)
	}
	h.let()
	s = newSite(t)
	s.run(125, "bootstrap")
}

// A list of servers is replaced by another, step by step as the help says.
func TestRedisReplace(t *testing.T) {
	t.Parallel() // it mostly waits
	servers := redistest.StartN(t, 4)
	before, after := addresses(servers[:3]), addresses([]*redistest.Server{servers[0], servers[1], servers[3]})
	const settings = "?max_ttl=2s&node_timeout=1500ms"
	site := func(url string) *site { return newSite(t, storeVar+"=redis://"+url) }
	old, both, next := site(before+settings), site(before+settings+"&next="+after), site(after+settings)
	run := []string{"run", "x", "--ttl", "2s", "--try", "--", "true"}
	old.run(0, run...)
	both.run(0, run...)
	if p := next.run(125, run...); !strings.Contains(p.err.String(), "configured with other servers") {
		t.Errorf("before: %s, want text with %q", p.err.String(), "configured with other servers")
	}
	if p := both.run(0, "replace"); strings.Count(p.err.String(), "\n") != 3 || !strings.Contains(p.err.String(), "waiting 5s") {
		t.Errorf("stderr %s, want three lines and %q", p.err.String(), "waiting 5s")
	}
	next.run(0, run...)
	both.run(0, run...)
	if p := old.run(125, run...); !strings.Contains(p.err.String(), "configured with other servers") {
		t.Errorf("after: %s, want text with %q", p.err.String(), "configured with other servers")
	}
	if p := next.run(125, "replace"); !strings.Contains(p.err.String(), "next=") {
		t.Errorf("with one list: %s, want text with %q", p.err.String(), "next=")
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

// "redis-server --daemonize yes" returns before the server accepts connections.
func TestBootstrapWaitsForServersToStart(t *testing.T) {
	servers := redistest.StartN(t, 3)
	servers[1].Kill()
	s := newSite(t, storeVar+"=redis://"+addresses(servers)+patiently)
	p := s.run(125, "bootstrap", "--wait", "0s")
	if strings.Contains(p.err.String(), "waiting") || !strings.Contains(p.err.String(), "refused") {
		t.Errorf("without a wait: %s, want no %q and text with %q", p.err.String(), "waiting", "refused")
	}
	p = s.start("bootstrap", "--wait", "1h")
	p.says(&p.err, "waiting up to 1h for servers to start: bootstrap: 2 of 3 servers answered, 3 are needed")
	if err := servers[1].Restart(); err != nil {
		t.Fatal(err)
	}
	p.wants(0)
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
