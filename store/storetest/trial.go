package storetest

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// reporter is the part of *testing.T that a check uses. It is an interface so
// that the suite can be tested: a check must fail on a broken store.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
	Cleanup(func())
}

// subject is the store under test.
type subject struct {
	// first and second are handles to the same locks; second is nil where
	// there is only one.
	first, second store.Store
	// reopen opens another pair, for checks that end it.
	reopen  func() (first, second store.Store)
	options Options
	// patience bounds the wait for something that has to come.
	patience time.Duration
}

// trial is one run of one check on one store.
type trial struct {
	reporter
	subject
	// least is the shortest TTL that the store accepts.
	least time.Duration
	// resolution is the unit to which the store rounds TTLs up.
	resolution time.Duration
	// long is a TTL that does not end during a check: leases that go earlier
	// were released.
	long time.Duration

	mu   sync.Mutex
	held map[string]store.Lease // by owner, to be cleaned up
}

func newTrial(r reporter, s subject) *trial {
	c := s.first.Caps()
	t := &trial{reporter: r, subject: s, least: max(c.MinTTL, store.MinTTL), resolution: max(c.Resolution, time.Millisecond), held: make(map[string]store.Lease)}
	t.options.ShortTTL = max(cmp.Or(t.options.ShortTTL, 150*time.Millisecond), t.least)
	t.long = max(time.Minute, 16*(t.options.ShortTTL+t.resolution))
	if c.MaxTTL > 0 {
		t.long = min(t.long, c.MaxTTL)
	}
	// Expected events must come by themselves, and not by the end of a long lease.
	t.patience = min(t.patience, t.long/2)
	r.Cleanup(t.cleanUp)
	return t
}

// now reads elapsed time: in virtual time, Go's.
func (t *trial) now() clock.Instant {
	if t.options.Virtual {
		return clock.Instant(time.Now().UnixNano())
	}
	return clock.System().Now()
}

// other returns the handle of a contender: the second one if there is one.
func (t *trial) other() store.Store {
	if t.second != nil {
		return t.second
	}
	return t.first
}

// handles returns all handles.
func (t *trial) handles() []store.Store {
	if t.second != nil {
		return []store.Store{t.first, t.second}
	}
	return []store.Store{t.first}
}

// name returns an unused lock name.
func (t *trial) name() string { return "storetest/" + crand.Text() }

// request returns the request of a new attempt.
func (t *trial) request(name string, ttl time.Duration) store.Lease {
	if t.options.Virtual {
		time.Sleep(time.Microsecond) // what is made at one instant has no order
	}
	h := store.Holder{Host: "host-of-the-holder", PID: 4711, Purpose: "nightly invoices", Since: time.Now()}
	return store.Lease{Name: name, Owner: store.NewOwner(), Meta: h.Encode(), TTL: ttl}
}

// acquire acquires a lock that must be free. The lock is released at the end of
// the check at the latest.
func (t *trial) acquire(s store.Store, r store.Lease) store.Grant {
	t.Helper()
	return t.acquireSpare(s, store.AcquireRequest{Lease: r})
}

// acquireSpare is acquire for a request that may reserve tokens.
func (t *trial) acquireSpare(s store.Store, r store.AcquireRequest) store.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("acquire the free lock %q: %v", r.Name, err)
	}
	t.track(r.Lease)
	if g.Token == 0 {
		t.Fatalf("acquire %q: granted without a token", r.Name)
	}
	t.spares("acquire", g.Spare, r.Spare)
	return g
}

// spares requires that no more tokens were reserved than asked for.
func (t *trial) spares(what string, got, asked int) {
	t.Helper()
	if got < 0 || got > asked {
		t.Fatalf("%s: asked for %d spare tokens, got %d", what, asked, got)
	}
}

// short is a lease whose end can be waited for.
type short struct {
	store.Lease
	store.Grant
	// start is when the request was sent, back when it was answered.
	start, back clock.Instant
}

// acquireShort takes a new lock for about ShortTTL. A machine so busy that this
// TTL is over before the answer arrives gets a longer one.
func (t *trial) acquireShort(s store.Store) short {
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

// overdue reports whether the validity of l has ended. From then on the store may
// let it expire.
func (t *trial) overdue(l short) bool { return t.now() >= validity.Until(l.start, l.TTL) }

// refuse asks for a lock that another owner holds, and requires a refusal.
func (t *trial) refuse(s store.Store, r store.Lease) *store.BusyError {
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

// release releases a lease that must exist.
func (t *trial) release(s store.Store, r store.Lease) {
	t.Helper()
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
		t.Fatalf("release %q by its owner: %v", r.Name, err)
	}
	t.mu.Lock()
	delete(t.held, r.Owner)
	t.mu.Unlock()
}

// renew renews one lease.
func (t *trial) renew(s store.Store, r store.Lease) error {
	t.Helper()
	errs := s.Renew(t.Context(), []store.Lease{r})
	if len(errs) != 1 {
		t.Fatalf("renew of one lease gave %d results", len(errs))
	}
	return errs[0]
}

// notHeld requires err to match store.ErrNotHeld.
func (t *trial) notHeld(what string, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrNotHeld) {
		t.Fatalf("%s: got error %v, want one that matches store.ErrNotHeld", what, err)
	}
}

// inspect returns the state of a lock.
func (t *trial) inspect(s store.Store, name string) store.State {
	t.Helper()
	st, err := s.Inspect(t.Context(), name)
	if err != nil {
		t.Fatalf("inspect %q: %v", name, err)
	}
	if st.Name != name {
		t.Fatalf("inspect %q: answered for %q", name, st.Name)
	}
	return st
}

// free requires every handle to see that the lock is free.
func (t *trial) free(name string) {
	t.Helper()
	for _, s := range t.handles() {
		if st := t.inspect(s, name); st.Held {
			t.Fatalf("inspect %q: held by %v, want it free", name, st.Holder)
		}
	}
}

// heldBy requires every handle to see that r.Owner holds the lock, perhaps with
// others. It returns what the last handle saw of this holder.
func (t *trial) heldBy(r store.Lease) (st store.State) {
	t.Helper()
	for _, s := range t.handles() {
		st = t.inspect(s, r.Name)
		if !st.Held {
			t.Fatalf("inspect %q: free, want it held by %s", r.Name, r.Owner)
		}
		for _, h := range st.Holders {
			if h.Holder.Owner == r.Owner {
				st.Holder, st.Token, st.ExpiresIn = h.Holder, h.Token, h.ExpiresIn
			}
		}
		if st.Holder.Owner != r.Owner {
			t.Fatalf("inspect %q: held by %q, want %q", r.Name, st.Holder.Owner, r.Owner)
		}
	}
	return st
}

// within requires the remaining time of a lease to be positive and at most ttl.
func (t *trial) within(what string, expiresIn, ttl time.Duration) {
	t.Helper()
	if expiresIn <= 0 || expiresIn > ttl+t.resolution {
		t.Fatalf("%s: expires in %v, want more than 0 and at most the TTL of %v", what, expiresIn, ttl)
	}
}

// lasts requires the lease of r to last at least to the end of its validity, for
// a lease of ttl whose request was sent at start.
func (t *trial) lasts(what string, r store.Lease, ttl time.Duration, start clock.Instant) {
	t.Helper()
	st := t.heldBy(r)
	if least := validity.Until(start, ttl).Sub(t.now()); st.ExpiresIn < least {
		t.Fatalf("%s: expires in %v, want at least %v", what, st.ExpiresIn, least)
	}
}

// eventually waits until ok returns true, and fails the check if it does not.
func (t *trial) eventually(what string, ok func() bool) {
	t.Helper()
	for start := t.now(); !ok(); t.pause() {
		if t.now().Sub(start) > t.patience {
			t.Fatalf("waited %v in vain: %s", t.patience, what)
		}
	}
}

// pause sleeps between two polls, for a random time so that contenders get out
// of step.
func (t *trial) pause() {
	select {
	case <-t.Context().Done():
	case <-time.After(time.Millisecond + rand.N(6*time.Millisecond)):
	}
}

func (t *trial) track(r store.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held[r.Owner] = r
}

// cleanUp releases what a check left behind, because others may use the server
// too.
func (t *trial) cleanUp() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
	defer cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.held {
		_ = t.first.Release(ctx, store.ReleaseRequest{Lease: r}) // gone already, or gone with its TTL
	}
}
