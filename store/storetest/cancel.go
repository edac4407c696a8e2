package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// checkEndedContext: an acquire with an ended context gets no lock.
func checkEndedContext(t *trial) {
	for _, s := range t.handles() {
		for want, ctx := range t.ended() {
			r := t.request(t.name(), t.long)
			_, err := s.Acquire(ctx, store.AcquireRequest{Lease: r})
			if !errors.Is(err, want) {
				t.Errorf("acquire on an ended context: got error %v, want %v", err, want)
			}
			if err == nil {
				t.track(r)
			}
			t.eventually("nothing is left of an acquire on an ended context", func() bool { return !t.inspect(s, r.Name).Held })
			t.takeAndKeep(r.Name)
		}
	}
}

// checkEndedContextIsNoLoss: no call with an ended context reports that a lease is gone.
// Otherwise its holder would stop for no reason.
func checkEndedContextIsNoLoss(t *trial) {
	for want, ctx := range t.ended() {
		start := t.now()
		r := t.request(t.name(), t.long)
		t.acquire(t.first, r)
		errs := t.first.Renew(ctx, []store.Lease{r, r})
		if len(errs) != 2 {
			t.Fatalf("renew of two leases on an ended context: %d results, want 2", len(errs))
		}
		for _, err := range errs {
			if err != nil && !errors.Is(err, want) {
				t.Errorf("renew on an ended context: got error %v, want %v", err, want)
			}
		}
		t.lasts("renewed on an ended context", r, t.long, start)
		if st, err := t.first.Inspect(ctx, r.Name); err == nil && st.Holder.Owner != r.Owner || err != nil && !errors.Is(err, want) {
			t.Errorf("inspect on an ended context: %+v, error %v, want the holder or %v", st, err, want)
		}
		if list, err := t.first.List(ctx, r.Name); err == nil && len(list) != 1 || err != nil && !errors.Is(err, want) {
			t.Errorf("list on an ended context: %+v, error %v, want the lock or %v", list, err, want)
		}
		if err := t.first.Release(ctx, store.ReleaseRequest{Lease: r}); err != nil && !errors.Is(err, want) {
			t.Errorf("release on an ended context: got error %v, want none or %v", err, want)
		}
		// A second release is safe, whatever the first one did.
		if err := t.first.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil && !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("release again: got error %v, want none or one that matches store.ErrNotHeld", err)
		}
		t.free(r.Name)
	}
}

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
