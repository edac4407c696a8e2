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
	slots map[string]string      // of the grants, by owner
}

// returned is a place that was taken with a release and is not yet waited in.
type returned struct {
	next  store.WaitRequest
	start clock.Instant
}

// comeBack releases r, which has waiters, and rejoins the queue.
func (t *actor) comeBack(s store.Store, r store.Lease) returned {
	t.Helper()
	p := returned{next: t.applicant(r.Name, t.long), start: t.now()}
	queued, err := s.(store.Rejoiner).ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: r}, p.next)
	if err != nil || !queued {
		t.Fatalf("rejoin of %q: queued %v, error %v, while somebody waits for it", r.Name, queued, err)
	}
	t.track(p.next.Lease)
	return p
}

// acquire acquires a lock that must be free. The lock is released at the end of
// the check at the latest.
func (t *actor) acquire(s store.Store, r store.Lease) store.Grant {
	t.Helper()
	return t.acquireSpare(s, store.AcquireRequest{Lease: r})
}

// acquireSpare is acquire for a request that may reserve tokens.
func (t *actor) acquireSpare(s store.Store, r store.AcquireRequest) store.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("acquire the free lock %q: %v", r.Name, err)
	}
	t.track(r.Lease)
	t.granted(r.Owner, g)
	if g.Token == 0 {
		t.Fatalf("acquire %q: granted without a token", r.Name)
	}
	t.spares("acquire", g.Spare, r.Spare)
	return g
}

// acquireShort takes a new lock for about ShortTTL. A machine so busy that this
// TTL is over before the answer arrives gets a longer one.
func (t *actor) acquireShort(s store.Store) short {
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

// refuse asks for a lock that another owner holds, and requires a refusal.
func (t *actor) refuse(s store.Store, r store.Lease) *store.BusyError {
	t.Helper()
	busy := t.busy(s, r)
	if busy.Holder.Waiting {
		t.Fatalf("acquire %q while somebody else holds it: got %v, want a holder", r.Name, busy)
	}
	return busy
}

// busy requires that r is refused since the lock is busy.
func (t *actor) busy(s store.Store, r store.Lease) *store.BusyError {
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

// behind requires a refusal since others wait ahead for what is free: it names one of them,
// as a waiter.
func (t *actor) behind(s store.Store, r store.Lease, ahead ...store.Lease) {
	t.Helper()
	busy := t.busy(s, r)
	if h := busy.Holder; !h.Waiting || !slices.ContainsFunc(ahead, func(a store.Lease) bool { return a.Owner == h.Owner }) {
		t.Fatalf("acquire %q behind a waiter: %v (%+v), want a waiter", r.Name, busy, h)
	}
}

// release releases a lease that must exist.
func (t *actor) release(s store.Store, r store.Lease) {
	t.Helper()
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
		t.Fatalf("release %q by its owner: %v", r.Name, err)
	}
	t.mu.Lock()
	delete(t.held, r.Owner)
	t.mu.Unlock()
}

// renew renews one lease.
func (t *actor) renew(s store.Store, r store.Lease) error {
	t.Helper()
	t.mu.Lock()
	r.Slots = t.slots[r.Owner]
	t.mu.Unlock()
	errs := s.Renew(t.Context(), []store.Lease{r})
	if len(errs) != 1 {
		t.Fatalf("renew of one lease gave %d results", len(errs))
	}
	return errs[0]
}

func (t *actor) track(r store.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held[r.Owner] = r
}

// cleanUp releases what a check left behind, because others may use the server
// too.
func (t *actor) cleanUp() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
	defer cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.held {
		_ = t.first.Release(ctx, store.ReleaseRequest{Lease: r}) // gone already, or gone with its TTL
	}
}
