package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// checkCancelledMidway: an acquire that is cancelled midway leaves nothing behind, and no
// request of it is executed later.
func checkCancelledMidway(t *trial) {
	const workers, rounds = 4, 15
	name := t.name()
	var wg sync.WaitGroup
	for w := range workers {
		s := t.handles()[w%len(t.handles())]
		wg.Go(func() {
			for range rounds {
				ctx, cancel := context.WithCancel(t.Context())
				stop := time.AfterFunc(rand.N(4*time.Millisecond), cancel)
				r := t.request(name, t.long)
				_, err := s.Acquire(ctx, store.AcquireRequest{Lease: r})
				switch {
				case err == nil:
					t.pause()
					if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
						t.Errorf("release of what was granted: %v", err)
					}
				case !errors.Is(err, context.Canceled) && !refused(err):
					t.Errorf("acquire, given up: got error %v, want context.Canceled or a refusal", err)
				default:
					t.pause()
				}
				stop.Stop()
				cancel()
			}
		})
	}
	wg.Wait()
	t.eventually("nothing is left of attempts that were given up", func() bool { return !t.inspect(t.first, name).Held })
	t.takeAndKeep(name)
}

// takeAndKeep acquires the lock when it is free, and checks that no late request ends the
// lease.
func (t *actor) takeAndKeep(name string) {
	t.Helper()
	var r store.Lease
	t.eventually("the lock can be acquired", func() bool {
		r = t.request(name, t.long)
		_, err := t.other().Acquire(t.Context(), store.AcquireRequest{Lease: r})
		if err != nil && !refused(err) {
			t.Fatalf("acquire: %v", err)
		}
		return err == nil
	})
	t.track(r)
	for range 10 {
		t.heldBy(r)
		t.pause()
	}
	t.release(t.other(), r)
}

// ended returns contexts that have ended, by their errors.
func (t *stage) ended() map[error]context.Context {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	t.Cleanup(cancel)
	return map[error]context.Context{context.Canceled: cancelled, context.DeadlineExceeded: late}
}

// refused reports whether err refuses an attempt since the lock is held or, in a quorum
// store, since several attempts each got some of the nodes.
func refused(err error) bool {
	return errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrQuorum)
}
