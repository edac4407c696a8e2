package redisstore_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// quarantined returns how many nodes an acquire finds in quarantine, and checks that the
// error of each has word as its reason.
func quarantined(t *testing.T, s *store.Store, name, word string) int {
	t.Helper()
	_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request(name)})
	var q *store.QuorumError
	if !errors.As(err, &q) {
		return 0
	}
	for _, n := range q.Nodes {
		if n.Outcome != store.Quarantined {
			continue
		}
		if !strings.Contains(n.Err.Error(), word) || !strings.Contains(n.Err.Error(), "takes part again in") {
			t.Errorf("%s is in quarantine because %v, want the reason %q", n.Node, n.Err, word)
		}
		if n.ExpiresIn <= 0 || n.ExpiresIn > redisstore.DefaultMaxTTL+2*time.Second {
			t.Errorf("%s is in quarantine for another %v, want at most the longest TTL and 2s", n.Node, n.ExpiresIn)
		}
	}
	return q.Count(store.Quarantined)
}

func restart(t *testing.T, servers ...*redistest.Server) {
	t.Helper()
	for _, s := range servers {
		s.Kill()
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
	}
}

// forgets makes A hold a lock on nodes 1 and 2 of three, and node 2 crash and come back
// without its memory. It reports whether B then gets the lock as well.
func forgets(t *testing.T, comesBack func(*redistest.Server)) bool {
	servers := redistest.StartN(t, 3)
	servers[2].Kill()
	a := open(t, addrs(servers), nil)
	acquire(t, a, request("a"))
	restart(t, servers[1])
	comesBack(servers[1])
	if err := servers[2].Restart(); err != nil {
		t.Fatal(err)
	}
	servers[2].Declare() // it has never had the lock
	b := open(t, addrs(servers), nil)
	_, err := b.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")})
	return err == nil
}

// A node that forgot a lock in a crash would make a second majority. Without
// its quarantine it does.
func TestForgetfulNodeIsQuarantined(t *testing.T) {
	if forgets(t, func(*redistest.Server) {}) {
		t.Error("two clients hold the lock")
	}
	if !forgets(t, func(s *redistest.Server) { s.Declare() }) {
		t.Error("without quarantine the lock was not granted twice, so the test shows nothing")
	}
}

// Some events begin a quarantine, and others do not.
func TestQuarantine(t *testing.T) {
	t.Parallel() // it mostly waits
	t.Run("Restarted", func(t *testing.T) {
		servers := redistest.StartN(t, 3)
		s := open(t, addrs(servers), nil)
		acquire(t, s, request("before"))
		for _, server := range servers[:2] {
			server.Text(t, "SAVE") // it keeps its data, and loses later writes
		}
		restart(t, servers[:2]...)
		eventually.True(t, "two nodes are in quarantine", func() bool { return quarantined(t, s, "a", "restarted") == 2 })
		if n := quarantined(t, open(t, addrs(servers), nil), "a", "restarted"); n != 2 {
			t.Errorf("another client finds %d nodes in quarantine, want 2", n)
		}
		st, err := s.Inspect(t.Context(), "a")
		if err != nil || st.Held {
			t.Fatalf("inspect: %+v, %v, want a free lock", st, err)
		}
		count := 0
		for _, n := range st.Nodes {
			if n.Outcome == store.Quarantined {
				count++
			}
		}
		if count != 2 {
			t.Errorf("inspect shows %d nodes in quarantine, want 2: %v", count, st.Nodes)
		}
		stats := redisstore.StatsOf(s)
		if n := stats.Nodes[0]; len(stats.Nodes) != 3 || n.Node != servers[0].Addr() || n.QuarantinedFor <= 0 || n.Why == nil || stats.Nodes[2].QuarantinedFor != 0 {
			t.Errorf("the statistics are %+v, want the first of three nodes in quarantine with a reason, and the third not", stats)
		}
	})
	t.Run("Without its data", func(t *testing.T) {
		servers := redistest.StartN(t, 3)
		s := open(t, addrs(servers), nil)
		restart(t, servers[:2]...)
		eventually.True(t, "two nodes are in quarantine", func() bool { return quarantined(t, s, "a", "new or was emptied") == 2 })
	})
	t.Run("Emptied", func(t *testing.T) {
		servers := redistest.StartN(t, 3)
		s := open(t, addrs(servers), nil)
		acquire(t, s, request("before"))
		for _, server := range servers {
			server.Text(t, "FLUSHALL")
		}
		if n := quarantined(t, s, "a", "emptied"); n < 2 {
			t.Errorf("%d nodes are in quarantine, want at least 2", n)
		}
		if err := s.Renew(t.Context(), []store.Lease{request("before")})[0]; !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("renewal of a lease that all nodes lost: %v, want %v", err, store.ErrNotHeld)
		}
	})
	t.Run("Emptied, and restarted later", func(t *testing.T) {
		servers := redistest.StartN(t, 3, "--appendonly", "yes", "--appendfsync", "always")
		s := openURL(t, "redis://"+strings.Join(addrs(servers), ",")+quick)
		brief := func(name string) store.AcquireRequest {
			r := request(name)
			r.TTL = time.Second
			return store.AcquireRequest{Lease: r}
		}
		granted := func() bool {
			_, err := s.Acquire(t.Context(), brief(rand.Text()))
			return err == nil
		}
		eventually.True(t, "locks are granted", granted)
		for _, server := range servers {
			server.Text(t, "FLUSHALL")
		}
		eventually.True(t, "the servers are in quarantine", func() bool { return !granted() })
		eventually.True(t, "locks are granted again", granted)
		for _, server := range servers {
			eventually.True(t, "the server has been durable for the longest TTL", func() bool {
				m, err := nodemark.Parse(server.Text(t, "GET", redistest.Mark))
				return err == nil && m.Durable > 0 && time.Since(time.UnixMicro(m.Durable)) > time.Duration(m.Longest)*time.Microsecond
			})
		}
		restart(t, servers...)
		eventually.True(t, "the client has connected again", func() bool {
			for _, n := range redisstore.StatsOf(s).Nodes {
				if n.QuarantinedFor > 0 {
					t.Fatalf("%s kept its data, and is in quarantine: %v", n.Node, n.Why)
				}
			}
			return granted()
		})
	})
	t.Run("Every write is in a file", func(t *testing.T) {
		servers := redistest.StartN(t, 3, "--appendonly", "yes", "--appendfsync", "always")
		s := open(t, addrs(servers), nil)
		held := request("a")
		acquire(t, s, held)
		restart(t, servers...)
		eventually.True(t, "locks are granted again", func() bool {
			_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("b")})
			return err == nil
		})
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, store.ErrBusy) {
			t.Errorf("acquire a lock that was held before the restart: %v, want %v", err, store.ErrBusy)
		}
	})
	t.Run("Every second is not", func(t *testing.T) {
		servers := redistest.StartN(t, 3, "--appendonly", "yes", "--appendfsync", "everysec")
		s := open(t, addrs(servers), nil)
		restart(t, servers...)
		eventually.True(t, "all nodes are in quarantine", func() bool { return quarantined(t, s, "b", "") == 3 })
	})
	t.Run("It ends", func(t *testing.T) {
		servers := redistest.StartN(t, 3)
		s, err := redisstore.Open(t.Context(), "redis://"+strings.Join(addrs(servers), ",")+"?max_ttl=2s", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		restart(t, servers...)
		r := request("a")
		r.TTL = time.Second
		eventually.True(t, "locks are granted again", func() bool {
			_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
			return err == nil
		})
	})
}

// An operator declares that new servers are new. The declaration covers only their present
// runs.
func TestBootstrap(t *testing.T) {
	servers := redistest.StartN(t, 3)
	for _, s := range servers {
		s.Text(t, "DEL", redistest.Mark)
	}
	url := "redis://" + strings.Join(addrs(servers), ",")
	s := open(t, addrs(servers), nil)
	if n := quarantined(t, s, "a", "new or was emptied"); n < 2 {
		t.Fatalf("%d new servers are in quarantine, want at least 2", n)
	}
	servers[2].Kill()
	if _, err := redisadmin.Bootstrap(t.Context(), url, nil, false); !errors.Is(err, store.ErrQuorum) || !strings.Contains(err.Error(), servers[2].Addr()) {
		t.Errorf("bootstrap with a server down: %v, want an error that names it", err)
	}
	if n := quarantined(t, s, "a", "new or was emptied"); n == 0 { // at least one, as the attempt ends before all have answered
		t.Error("no node is in quarantine after a bootstrap that failed")
	}
	if err := servers[2].Restart(); err != nil {
		t.Fatal(err)
	}
	declared, err := redisadmin.Bootstrap(t.Context(), url, nil, false)
	if err != nil || len(declared) != 3 || declared[0].RunID == "" || declared[0].Node != servers[0].Addr() {
		t.Fatalf("bootstrap: %v, %v, want three servers with their run ids", declared, err)
	}
	acquire(t, s, request("a"))

	if _, err := redisadmin.Bootstrap(t.Context(), url, nil, false); !errors.Is(err, store.ErrBusy) {
		t.Errorf("bootstrap while a lock is held: %v, want %v", err, store.ErrBusy)
	}
	if _, err := redisadmin.Bootstrap(t.Context(), url, nil, true); err != nil {
		t.Errorf("bootstrap by force: %v", err)
	}
	restart(t, servers[:2]...)
	eventually.True(t, "two nodes are in quarantine", func() bool { return quarantined(t, s, "b", "") == 2 })
}

// Servers that were declared empty while every write went to a file have all leases after
// a restart. A declaration by force says nothing about leases from before it.
func TestBootstrapOfDurableServers(t *testing.T) {
	for name, force := range map[string]bool{"empty": false, "by force": true} {
		t.Run(name, func(t *testing.T) {
			servers := redistest.StartN(t, 3, "--appendonly", "yes", "--appendfsync", "always")
			if _, err := redisadmin.Bootstrap(t.Context(), "redis://"+strings.Join(addrs(servers), ","), nil, force); err != nil {
				t.Fatal(err)
			}
			acquire(t, open(t, addrs(servers), nil), request("a"))
			restart(t, servers...)
			if n := quarantined(t, open(t, addrs(servers), nil), "b", "restarted"); n > 0 != force {
				t.Errorf("%d servers are in quarantine, want some only by force", n)
			}
		})
	}
}

// A single server keeps quarantine only if a lock requires it.
func TestOneServerInQuarantine(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, []string{server.Addr()}, nil)
	acquire(t, s, request("a"))
	if keys := server.Text(t, "EXISTS", redistest.Mark); keys != "0" {
		t.Error("a server without a lock that requires crash safety has a mark")
	}
	safe := request("b")
	safe.Require = store.CrashSafe
	_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: safe})
	var q *store.QuorumError
	if !errors.As(err, &q) || q.Count(store.Quarantined) != 1 {
		t.Errorf("the first lock that requires crash safety: %v, want a quarantined server", err)
	}
	acquire(t, s, request("c"))
	server.Declare()
	acquire(t, s, safe)
	restart(t, server)
	eventually.True(t, "the server is in quarantine", func() bool {
		safe.Owner = store.NewOwner()
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: safe})
		return errors.As(err, &q) && q.Count(store.Quarantined) == 1
	})

	server.Text(t, "ACL", "SETUSER", "mute", "on", ">x", "~*", "+@all", "-info", "-config")
	mute, err := redisstore.Open(t.Context(), "redis://mute:x@"+server.Addr(), patient())
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	if _, err := mute.Acquire(t.Context(), store.AcquireRequest{Lease: safe}); !errors.Is(err, store.ErrQuorum) || !strings.Contains(err.Error(), "permit the user INFO") {
		t.Errorf("acquire without the right to INFO: %v, want an error that names the right", err)
	}
}

// A client with short leases observes the quarantine of clients with longer ones. It learns
// of them from a server that has lost nothing.
func TestQuarantineOfTheLongestTTL(t *testing.T) {
	servers := redistest.StartN(t, 3)
	b := open(t, addrs(servers), nil)
	acquire(t, b, request("a"))
	restart(t, servers[:2]...)
	if err := servers[2].Freeze(); err != nil { // so that it is connected last
		t.Fatal(err)
	}
	brief := openURL(t, "redis://"+strings.Join(addrs(servers), ",")+"?max_ttl=2s&node_timeout=1s")
	if err := servers[2].Thaw(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "both servers that forgot are in quarantine for the longest TTL", func() bool {
		r := request("a")
		r.TTL = time.Second
		_, err := brief.Acquire(t.Context(), store.AcquireRequest{Lease: r})
		var q *store.QuorumError
		return errors.As(err, &q) && q.Nodes[0].ExpiresIn > 30*time.Second && q.Nodes[1].ExpiresIn > 30*time.Second
	})
}

// A user with the right to read only can inspect locks, even if no client has written the
// mark yet. Acquiring a lock needs the right to write it.
func TestInspectNeedsNoMark(t *testing.T) {
	servers := redistest.StartN(t, 3)
	for _, s := range servers {
		s.Text(t, "DEL", redistest.Mark)
		s.Text(t, "ACL", "SETUSER", "looks", "on", ">x", "~*", "+@read", "+@scripting", "+@connection", "+info", "+time")
	}
	s, err := redisstore.Open(t.Context(), "redis://looks:x@"+strings.Join(addrs(servers), ","), patient())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if st, err := s.Inspect(t.Context(), "a"); err != nil || st.Held {
		t.Errorf("inspect: %+v, %v, want a free lock", st, err)
	}
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, store.ErrQuorum) || !strings.Contains(err.Error(), "lacks a permission") {
		t.Errorf("acquire: %v, want an error that names the missing permission", err)
	}
}
