package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// actor acquires, renews and releases locks, and leaves none behind.
type actor struct {
	*observer

	mu    sync.Mutex
	held  map[string]store.Lease // by owner, to be cleaned up
	slots map[string][]int64     // of the grants, by owner
}

// unclaimed is a place that was taken with a release and has no Wait yet.
type unclaimed struct {
	next  store.WaitRequest
	start clock.Instant
}

// rejoin releases r, which has waiters, and takes the next place in the queue.
func (t *actor) rejoin(s *store.Store, r store.Lease) unclaimed {
	t.Helper()
	p := unclaimed{next: t.applicant(r.Name, t.long), start: t.now()}
	queued, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: r}, p.next)
	if err != nil || !queued {
		t.Fatalf("rejoin of %q: queued %v, error %v, want a place behind the waiter", r.Name, queued, err)
	}
	t.track(p.next.Lease)
	return p
}

// acquire acquires a lock that must be free. It is released when the check ends, if not
// before.
func (t *actor) acquire(s *store.Store, r store.Lease) store.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
	if err != nil {
		t.Fatalf("acquire the free lock %q: %v", r.Name, err)
	}
	t.track(r)
	t.granted(g)
	if g.Token == 0 {
		t.Fatalf("acquire %q: granted without a token", r.Name)
	}
	return g
}

// acquireShort acquires a new lock for about ShortTTL. If the machine is so busy that the
// TTL has passed before the reply arrives, it tries again with a longer one.
func (t *actor) acquireShort(s *store.Store) short {
	t.Helper()
	var err error
	for try := range 6 {
		l := short{Lease: t.request(t.name(), t.options.ShortTTL<<try), start: t.now()}
		if l.Grant, err = s.Acquire(t.Context(), store.AcquireRequest{Lease: l.Lease}); err == nil {
			l.back = t.now()
			t.track(l.Lease)
			return l
		}
		if errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrBusy) {
			break
		}
	}
	t.Fatalf("acquire a free lock for a short time: %v", err)
	return short{}
}

// refuse acquires a lock that another owner holds, and requires a refusal that names the
// holder.
func (t *actor) refuse(s *store.Store, r store.Lease) *store.BusyError {
	t.Helper()
	busy := t.busy(s, r)
	if busy.Holder.Waiting {
		t.Fatalf("acquire %q while somebody else holds it: got %v, want a holder", r.Name, busy)
	}
	return busy
}

// busy requires that r is refused since the lock is busy.
func (t *actor) busy(s *store.Store, r store.Lease) *store.BusyError {
	t.Helper()
	g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
	if err == nil {
		t.Fatalf("acquire %q: granted (token %v) while somebody else holds it", r.Name, g.Token)
	}
	var busy *store.BusyError
	if !errors.Is(err, store.ErrBusy) || !errors.As(err, &busy) {
		t.Fatalf("acquire %q while somebody else holds it: got %v (%T), want a *store.BusyError", r.Name, err, err)
	}
	return busy
}

// behind requires that r is refused, although the lock has room, since others wait for it.
// Before long the refusal names one of them, as a waiter: of several servers, one may still
// have to carry out the release that made the room.
func (t *actor) behind(s *store.Store, r store.Lease, ahead ...store.Lease) {
	t.Helper()
	for start := t.now(); ; t.pause() {
		busy := t.busy(s, r)
		h := busy.Holder
		if h.Waiting && slices.ContainsFunc(ahead, func(a store.Lease) bool { return a.Owner == h.Owner }) {
			return
		}
		if t.now().Sub(start) > t.patience {
			t.Fatalf("acquire %q behind a waiter: %v (%+v), want a refusal that names a waiter", r.Name, busy, h)
		}
	}
}

// release releases a lease that must exist.
func (t *actor) release(s *store.Store, r store.Lease) {
	t.Helper()
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
		t.Fatalf("release %q by its owner: %v", r.Name, err)
	}
	t.mu.Lock()
	delete(t.held, r.Owner)
	t.mu.Unlock()
}

// renew renews one lease.
func (t *actor) renew(s *store.Store, r store.Lease) error {
	t.Helper()
	t.mu.Lock()
	r.Slots = t.slots[r.Owner]
	t.mu.Unlock()
	errs := s.Renew(t.Context(), []store.Lease{r})
	if len(errs) != 1 {
		t.Fatalf("renew of one lease returned %d results, want 1", len(errs))
	}
	return errs[0]
}

// track has cleanUp release r.
func (t *actor) track(r store.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held[r.Owner] = r
}

// cleanUp releases the leases that a check left, because other tests may use the same server.
func (t *actor) cleanUp() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
	defer cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.held {
		_ = t.first.Release(ctx, store.ReleaseRequest{Lease: r}) // it has ended already, or ends with its TTL
	}
}
