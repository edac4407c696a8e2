package redisstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// A semaphore of 8 whose permits are held for 5 ms has at least 6 times the turns of a mutex
// that is held for as long: a release hands the permit on, and no permit stays free until a waiter
// asks.
func TestPermitsAreHandedOverLikeAMutex(t *testing.T) {
	for _, c := range []struct {
		servers int
		late    time.Duration // the most by which messages are late
	}{{1, 0}, {3, 500 * time.Microsecond}} {
		t.Run(fmt.Sprintf("servers=%d/late=%v", c.servers, c.late), func(t *testing.T) {
			mutex := turns(t, "mutex", c.servers, c.late, 16)
			permits := turns(t, "permit", c.servers, c.late, 8*16)
			t.Logf("turns in a second: mutex %.0f, permits %.0f, %.1f times as many", mutex, permits, permits/mutex)
			if permits < 6*mutex {
				t.Errorf("%.0f turns in a second of 8 permits, want at least 6 times the %.0f of a mutex", permits, mutex)
			}
		})
	}
}

// turns returns how many turns in a second of virtual time 16 goroutines of two stores have with a
// lock that each of them holds for 5 ms. tried is their number of turns in all.
func turns(t *testing.T, kind string, servers int, late time.Duration, tried int) (perSecond float64) {
	synctest.Test(t, func(t *testing.T) {
		network, hosts := bubbled(t, servers)
		if late > 0 {
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(1, 2))
			network.Late = func() time.Duration {
				mu.Lock()
				defer mu.Unlock()
				return time.Duration(random.Int64N(int64(late)))
			}
		}
		stores := []*store.Store{openBubbled(t, network, hosts, nil), openBubbled(t, network, hosts, nil)}
		begin := time.Now()
		var all sync.WaitGroup
		for g := range 16 {
			all.Go(func() {
				for range tried / 16 {
					takeTurn(t, stores[g%2], kind)
				}
			})
		}
		all.Wait()
		perSecond = float64(tried) / time.Since(begin).Seconds()
	})
	return perSecond
}

// takeTurn waits for a lock of that kind, holds it for 5 ms, and releases it.
func takeTurn(t *testing.T, s *store.Store, kind string) {
	r := attempt(kind)
	g, err := s.Wait(context.Background(), store.WaitRequest{Lease: r}, nil)
	if err != nil {
		t.Error(err)
		return
	}
	time.Sleep(5 * time.Millisecond)
	if err := s.Release(context.Background(), store.ReleaseRequest{Lease: g.Lease}); err != nil {
		t.Error(err)
	}
}
