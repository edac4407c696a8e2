package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// deploy is an attempt of an owner that several processes share.
func deploy() store.Lease {
	return store.Lease{Name: "a", Owner: "deploy", Attempt: store.NewOwner(), TTL: 30 * time.Second}
}

func holds(t *testing.T, server *redistest.Server) bool {
	t.Helper()
	return server.Text(t, "GET", "a") == "deploy {}"
}

// An attempt that fails or is cancelled leaves the lease that another process has under
// the same owner.
func TestAttemptOfAnOwnerThatHasTheLock(t *testing.T) {
	for name, ends := range map[string]func(t *testing.T, s *store.Store, r store.Lease){
		"is cancelled": func(t *testing.T, s *store.Store, r store.Lease) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*time.Millisecond, cancel)
			if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: r}); err == nil {
				t.Error("granted with the replies of one server of three")
			}
		},
		"fails": func(t *testing.T, s *store.Store, r store.Lease) {
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err == nil {
				t.Error("granted with the replies of one server of three")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			servers := redistest.StartN(t, 3)
			proxies := behind(t, servers)
			impatient := &redisstore.Options{NodeTimeout: 200 * time.Millisecond}
			first, second := open(t, addrs(proxies), nil), open(t, addrs(proxies), impatient)
			held := deploy()
			takes(t, first, servers, held)
			settled(t, second)
			proxies[0].DropReplies()
			proxies[1].DropReplies()
			ends(t, second, deploy())
			proxies[0].Pass()
			proxies[1].Pass()
			eventually.True(t, "the servers can be used again", func() bool {
				r := request("warm-up")
				_, err := second.Acquire(t.Context(), store.AcquireRequest{Lease: r})
				return err == nil && second.Release(t.Context(), store.ReleaseRequest{Lease: r}) == nil
			})
			settled(t, second) // so that all pending releases are executed
			for i, server := range servers {
				eventually.True(t, "its clean-up has arrived", func() bool { return redisstore.StatsOf(second).Nodes[i].Retained == 0 })
				if !holds(t, server) {
					t.Errorf("server %d: the attempt has ended the lease of another process", i)
				}
			}
			if err := first.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
				t.Fatal(err)
			}
			eventually.True(t, "the holder has released the lock", noLock(t, servers, "a"))
		})
	}
}

// An attempt cleans up its own grants, also if its owner is not new.
func TestAttemptOfAnOwnerThatFails(t *testing.T) {
	servers := redistest.StartN(t, 3)
	proxies := behind(t, servers)
	s := open(t, addrs(proxies), &redisstore.Options{NodeTimeout: 200 * time.Millisecond})
	settled(t, s)
	proxies[0].DropReplies()
	proxies[1].DropReplies()
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: deploy()}); err == nil {
		t.Error("granted with the replies of one server of three")
	}
	proxies[0].Pass()
	proxies[1].Pass()
	eventually.True(t, "no keys of the attempt are left", noLock(t, servers, "a"))
	// The failed attempt does not block the next one.
	acquire(t, s, deploy())
}

// A release that comes late ends no grant that was made, or joined, after it.
func TestLateReleaseOfAnOwner(t *testing.T) {
	for name, before := range map[string]bool{"joined before the release": true, "made after it": false} {
		t.Run(name, func(t *testing.T) {
			servers := redistest.StartN(t, 3)
			proxies := behind(t, servers)
			first, second := open(t, addrs(proxies), nil), open(t, addrs(proxies), nil)
			held := deploy()
			takes(t, first, servers, held)
			if before {
				takes(t, second, servers, deploy())
				settled(t, second)
			}
			goAway(t, first, proxies[2], 2)
			if err := first.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
				t.Fatal(err)
			}
			if !before { // by a client that reaches the server; the lease had ended by itself
				servers[2].Text(t, "SET", "a", "deploy {}", "PX", "60000")
				servers[2].Text(t, "SET", "{a}:made", store.NewOwner(), "PX", "60000")
			}
			proxies[2].Pass()
			eventually.True(t, "the retained release is sent", func() bool { return redisstore.StatsOf(first).Nodes[2].Retained == 0 })
			if !holds(t, servers[2]) {
				t.Error("a release that was retained has ended the lease of another process")
			}
		})
	}
}

// Releasing a lease that several processes joined ends it for all of them.
func TestReleaseOfAnOwnerEndsAll(t *testing.T) {
	servers := redistest.StartN(t, 3)
	first, second := open(t, addrs(servers), nil), open(t, addrs(servers), nil)
	held, joined := deploy(), deploy()
	takes(t, first, servers, held)
	takes(t, second, servers, joined)
	if err := second.Release(t.Context(), store.ReleaseRequest{Lease: joined}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the lock is free", noLock(t, servers, "a"))
	acquire(t, first, deploy()) // no tombstone blocks it
}
