package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// goAway closes the proxy's connections and makes it refuse new ones, and returns once the
// store has noticed.
func goAway(t *testing.T, s *store.Store, p *faultproxy.Proxy, node int) {
	t.Helper()
	p.RefuseNew()
	p.Cut()
	eventually.True(t, "the store notices that the node is away", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.Inspect(ctx, "somebody else's")
		return redisstore.StatsOf(s).Nodes[node].Err != nil
	})
}

// A lease that is released while a node is away is gone there soon after the node is back,
// without a further call.
func TestReleaseWhileANodeIsAway(t *testing.T) {
	servers := redistest.StartN(t, 3)
	proxies := behind(t, servers)
	s := open(t, addrs(proxies), nil)
	held := request("a")
	takes(t, s, servers, held)
	goAway(t, s, proxies[1], 1)
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
		t.Fatal(err)
	}
	if n := redisstore.StatsOf(s).Nodes[1]; n.Retained != 1 {
		t.Errorf("%d releases are retained for the node that is away, want 1", n.Retained)
	}
	proxies[1].Pass()
	eventually.True(t, "the lock is gone at the node that was away", noLock(t, servers, "a"))
	eventually.True(t, "no release is retained any more", func() bool { return redisstore.StatsOf(s).Nodes[1].Retained == 0 })
}

// An attempt of unknown outcome is cleaned up, however often the node refuses a connection
// before.
func TestAttemptDuringAnOutage(t *testing.T) {
	servers := redistest.StartN(t, 1)
	proxies := behind(t, servers)
	s := open(t, addrs(proxies), nil)
	proxies[0].CutReplyTo("{a}:gone:", 1)
	proxies[0].RefuseNew()
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, store.ErrAmbiguous) {
		t.Fatalf("acquire: %v, want an unknown outcome", err)
	}
	eventually.True(t, "the node is seen to be away", func() bool { return redisstore.StatsOf(s).Nodes[0].Err != nil })
	if noLock(t, servers, "a")() {
		t.Fatal("the server did not grant the lock")
	}
	proxies[0].Pass()
	eventually.True(t, "the lock is gone", noLock(t, servers, "a"))
}

// A release that gets an error reply is sent again until the server has executed it.
func TestReleaseRefusedByANode(t *testing.T) {
	for name, trouble := range map[string]struct{ begin, end []string }{
		"READONLY": {[]string{"REPLICAOF", "127.0.0.1", "1"}, []string{"REPLICAOF", "NO", "ONE"}},
		"NOPERM":   {[]string{"ACL", "SETUSER", "default", "-del"}, []string{"ACL", "SETUSER", "default", "+del"}},
	} {
		t.Run(name, func(t *testing.T) {
			servers := redistest.StartN(t, 3)
			s := open(t, addrs(servers), nil)
			held := request("a")
			takes(t, s, servers, held)
			servers[2].Text(t, trouble.begin...)
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
				t.Fatal(err)
			}
			eventually.True(t, "the release is retained", func() bool { return redisstore.StatsOf(s).Nodes[2].Retained == 1 })
			eventually.True(t, "the release is refused again", func() bool {
				_, said, _ := strings.Cut(servers[2].Text(t, "INFO", "commandstats"), "cmdstat_evalsha:")
				_, failed, _ := strings.Cut(said, "failed_calls=")
				var n int
				fmt.Sscan(failed, &n)
				return n >= 3
			})
			if servers[2].Text(t, "EXISTS", "a") != "1" {
				t.Fatal("the server has released the lock although it refuses releases")
			}
			servers[2].Text(t, trouble.end...)
			eventually.True(t, "the lock is gone", noLock(t, servers, "a"))
		})
	}
}

// No release is retained for a node that never got a request of the lease.
func TestNothingIsRetainedForADeadNode(t *testing.T) {
	servers := redistest.StartN(t, 3)
	proxies := behind(t, servers)
	s := open(t, addrs(proxies), nil)
	settled(t, s)
	goAway(t, s, proxies[0], 0)
	for range 100 {
		r := request("a")
		acquire(t, s, r)
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
			t.Fatal(err)
		}
	}
	// The first few requests may have been sent when the node went away.
	if n := redisstore.StatsOf(s).Nodes[0]; n.Retained > 10 {
		t.Errorf("%d releases are retained for a node that has none of the leases, want at most 10", n.Retained)
	}
}

// While one node at a time is away for 150 ms of each second, and never two at once, locks
// are granted at least each half second. The leases last for 30 s: a node that kept a released one
// would block the lock for that long.
func TestBlips(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, away := range map[string]time.Duration{"refused": 150 * time.Millisecond, "reset": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { blip(t, away) })
		})
	}
}

func blip(t *testing.T, away time.Duration) {
	const (
		every = time.Second / 3
		blips = 12
		hold  = 4 * time.Millisecond // at most: messages take a part of the time
		bound = time.Second / 2
	)
	network, hosts := bubbled(t, 3)
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	last, longest, grants := time.Now(), time.Duration(0), 0
	granted := func() {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		longest = max(longest, now.Sub(last))
		last = now
		grants++
	}
	var clients sync.WaitGroup
	for range 3 {
		s := openBubbled(t, network, hosts, nil)
		clients.Go(func() {
			for ctx.Err() == nil {
				r := waiter("stock")
				g, err := s.Wait(ctx, store.WaitRequest{Lease: r}, nil)
				if err != nil {
					continue
				}
				granted()
				time.Sleep(rand.N(hold))
				for s.Release(t.Context(), store.ReleaseRequest{Lease: g.Lease}) != nil && ctx.Err() == nil {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	for i := range blips {
		h := hosts[i%len(hosts)]
		h.Refuse(away > 0)
		h.Cut()
		time.Sleep(away)
		h.Refuse(false)
		time.Sleep(every - away + rand.N(hold))
	}
	granted() // which counts the time since the last grant
	cancel()
	clients.Wait()
	t.Logf("%d grants, the longest time without one %v", grants, longest)
	if longest > bound {
		t.Errorf("no client was granted the lock for %v, want at most %v", longest, bound)
	}
}

// A server that is out of memory still releases a lock: it frees memory first, and keeps no
// lock because it has no room for a tombstone.
func TestReleaseOutOfMemory(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			servers := redistest.StartN(t, nodes)
			s := open(t, addrs(servers), nil)
			held := request("a")
			takes(t, s, servers, held)
			got := wait(t, t.Context(), s, servers, patientWaiter("a"))
			for _, server := range servers {
				server.Text(t, "CONFIG", "SET", "maxmemory", "1")
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: held, Renewed: true}); err != nil {
				t.Errorf("release on a server without memory: %v", err)
			}
			grantedSoon(t, got)
		})
	}
}

// A server may hand the lock to a waiter that has left, if a late request kept its place.
// The client is notified and releases the lock.
func TestLockHandedToAWaiterThatLeft(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			servers := redistest.StartN(t, nodes)
			s, other := open(t, addrs(servers), nil), open(t, addrs(servers), nil)
			held, leaves := request("a"), patientWaiter("a")
			takes(t, s, servers, held)
			ctx, cancel := context.WithCancel(t.Context())
			left := wait(t, ctx, s, servers, leaves)
			key := "{a}:place:" + leaves.Owner
			var places []string
			for _, server := range servers {
				places = append(places, server.Text(t, "GET", key))
			}
			cancel()
			<-left
			for _, server := range servers {
				eventually.True(t, "the place is removed", func() bool { return server.Deleted(t, key) })
			}
			got := wait(t, t.Context(), other, servers, patientWaiter("a"))
			for i, server := range servers { // what the late request leaves
				ticket := places[i][14:30]
				server.Text(t, "DEL", "{a}:gone:"+leaves.Owner)
				server.Text(t, "SET", key, places[i], "PX", "60000")
				server.Text(t, "LPUSH", "{a}:line", ticket+" "+leaves.Owner)
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
				t.Fatal(err)
			}
			grantedSoon(t, got)
		})
	}
}
