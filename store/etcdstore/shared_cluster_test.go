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

// Read-write locks and semaphores go on, with no writer beside a reader, no permit too
// many and tokens in order, while the leader is killed, paused, and cut off from the
// others.
func TestLeaderFailsForSharedLocks(t *testing.T) {
	c := three(t)
	const ttl = 20 * time.Second
	rules := &referee{limit: 3}
	all := &crowd{turns: make([]atomic.Int64, 4)}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	for i := range all.turns {
		s := open(t, c.Endpoints(), etcdstore.Options{Timeout: 20 * time.Second})
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
				time.Sleep(time.Millisecond) // the others are to want it meanwhile
				leave()
				if clock.System().Now() >= validity.Until(start.Add(g.Since), ttl) {
					t.Log("the machine was too slow: a lease was over at the end of its turn")
				}
				all.turns[i].Add(1)
				if err := s.Release(ctx, store.ReleaseRequest{Lease: l}); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrQuorum) {
					t.Errorf("release: %v", err)
				}
			}
		})
	}
	all.more(t, 5, "at first")
	all.faults(t, c)
}

// A writer that reaches only a leader which is cut off from the others has no renewal
// confirmed that lasts until a reader has the lock.
func TestCutOffWriterIsTold(t *testing.T) {
	cutOffHolderIsTold(t, func(ttl time.Duration) (held, waits store.Lease) {
		return writer("told", ttl), reader("told", ttl)
	})
}
