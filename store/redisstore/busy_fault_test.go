package redisstore_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// The calls of a busy client gather for servers that have a backlog. If these stand still, lose
// their connections or forget the scripts, one after the other, each lock has one holder at a
// time, a lock that nobody else wants is granted, and nothing is left in the end.
func TestBusyClientWhileServersFail(t *testing.T) {
	const goroutines, shared, faults = 32, 8, 9
	servers := redistest.StartN(t, 5)
	s := open(t, addrs(servers), &redisstore.Options{NodeTimeout: 3 * time.Second, ConnectTimeout: long})
	var (
		holders [shared]atomic.Int64
		grants  atomic.Int64
		stop    atomic.Bool
		all     sync.WaitGroup
	)
	for g := range goroutines {
		all.Go(func() {
			for i := 0; !stop.Load(); i++ {
				own := request(fmt.Sprint("own", g))
				_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: own})
				if errors.Is(err, store.ErrQuorum) && !errors.Is(err, store.ErrBusy) {
					continue // this machine is too slow for the timeout of a node
				}
				if err != nil {
					t.Errorf("acquire of a lock that nobody else wants: %v", err)
					return
				}
				which := (g + i) % shared
				l := request(fmt.Sprint("shared", which))
				switch _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); {
				case err == nil:
					if other := holders[which].Swap(int64(g) + 1); other != 0 {
						t.Errorf("lock %s: %d has it beside %d", l.Name, g, other-1)
					}
					grants.Add(1)
					holders[which].CompareAndSwap(int64(g)+1, 0)
					if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
						t.Errorf("release: %v", err)
					}
				case !errors.Is(err, store.ErrBusy) && !errors.Is(err, store.ErrQuorum):
					t.Errorf("acquire of a contended lock: %v", err)
				}
				if err := s.Release(t.Context(), store.ReleaseRequest{Lease: own}); err != nil {
					t.Errorf("release: %v", err)
					return
				}
			}
		})
	}
	progress := func() {
		t.Helper()
		from := grants.Load()
		eventually.True(t, "locks are granted", func() bool { return t.Failed() || grants.Load() > from+goroutines })
	}
	for i := range faults {
		server := servers[i%len(servers)]
		progress()
		switch i % 3 {
		case 0:
			if err := server.Freeze(); err != nil {
				t.Fatal(err)
			}
			progress()
			if err := server.Thaw(); err != nil {
				t.Fatal(err)
			}
		case 1:
			server.Text(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		case 2:
			server.Text(t, "SCRIPT", "FLUSH")
		}
	}
	stop.Store(true)
	all.Wait()
	for g := range goroutines {
		eventually.True(t, "no key of a lock is left", noLock(t, servers, fmt.Sprint("own", g)))
	}
	for i := range shared {
		eventually.True(t, "no key of a lock is left", noLock(t, servers, fmt.Sprint("shared", i)))
	}
}
