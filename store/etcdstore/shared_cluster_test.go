package etcdstore_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// progress counts the turns of workers that share a lock.
type progress struct {
	turns []atomic.Int64 // of each worker
}

// more waits until every worker has had so many more turns.
func (p *progress) more(t *testing.T, n int64, when string) {
	t.Helper()
	var want []int64
	for i := range p.turns {
		want = append(want, p.turns[i].Load()+n)
	}
	start := time.Now()
	defer func() { t.Logf("%s: %v", when, time.Since(start)) }()
	end := time.Now().Add(patience)
	for i := range p.turns {
		for p.turns[i].Load() < want[i] {
			if time.Now().After(end) {
				t.Fatalf("%s: worker %d has had no %d further turns in %v", when, i, n, patience)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// Read-write locks and semaphores go on, with no writer beside a reader, no permit too
// many and tokens in order, while the leader is killed, paused, and cut off from the
// others or from the clients.
func TestLeaderFailsForSharedLocks(t *testing.T) {
	t.Parallel()
	c := three(t)
	const ttl = 20 * time.Second
	rules := &referee{limit: 3}
	all := &progress{turns: make([]atomic.Int64, 4)}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	for i := range all.turns {
		s := open(t, c.ProxyEndpoints(), etcdstore.Options{Timeout: 20 * time.Second})
		group.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				l := rules.lease(n, ttl)
				start := clock.System().Now()
				g, err := s.Wait(ctx, store.WaitRequest{Lease: l}, nil)
				if err != nil {
					if !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrQuorum) {
						t.Errorf("wait: %v", err)
					}
					continue
				}
				leave := rules.check(t, l, g)
				time.Sleep(time.Millisecond) // so that the others ask for it meanwhile
				leave()
				if clock.System().Now() >= validity.Until(start.Add(g.Since), ttl) {
					t.Log("the machine is slow: the lease ended before its turn")
				}
				all.turns[i].Add(1)
				if err := s.Release(ctx, store.ReleaseRequest{Lease: l}); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrQuorum) {
					t.Errorf("release: %v", err)
				}
			}
		})
	}
	goesOn := func(what string) {
		t.Helper()
		all.more(t, 5, what)
	}
	goesOn("at first")
	if err := c.LeaderFaults(t.Context(), goesOn); err != nil {
		t.Fatal(err)
	}
	clientFaults(t, c, goesOn)
}

// A writer that reaches only a leader which is cut off from the others has no renewal
// confirmed that lasts until a reader has the lock.
func TestCutOffWriterIsTold(t *testing.T) {
	t.Parallel()
	cutOffHolderIsTold(t, func(ttl time.Duration) (held, waits store.Lease) {
		return writer("told", ttl), reader("told", ttl)
	})
}
