package storetest

import (
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// observer compares the state that a store reports with the state that a lock must have.
type observer struct{ *stage }

// notHeld requires err to match store.ErrNotHeld.
func (t *observer) notHeld(what string, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrNotHeld) {
		t.Fatalf("%s: got error %v, want one that matches store.ErrNotHeld", what, err)
	}
}

// inspect returns the state of a lock.
func (t *observer) inspect(s *store.Store, name string) store.State {
	t.Helper()
	st, err := s.Inspect(t.Context(), name)
	if err != nil {
		t.Fatalf("inspect %q: %v", name, err)
	}
	if st.Name != name {
		t.Fatalf("inspect %q: got the state of %q", name, st.Name)
	}
	t.decided("inspect", st)
	return st
}

// decided requires that a lease is undecided only while a node is silent, and that it is then
// described.
func (t *observer) decided(what string, st store.State) {
	t.Helper()
	for _, h := range st.Undecided {
		if store.Silent(st.Nodes) == "" || h.Holder.Owner == "" {
			t.Fatalf("%s %q: the lease %+v is undecided, although all nodes answer: %+v", what, st.Name, h, st.Nodes)
		}
	}
}

// free requires every handle to see that the lock is free.
func (t *observer) free(name string) {
	t.Helper()
	for _, s := range t.handles() {
		if st := t.inspect(s, name); st.Held {
			t.Fatalf("inspect %q: held by %v, want it free", name, st.Holder)
		}
	}
}

// heldBy requires every handle to see that r.Owner holds the lock, perhaps with
// others. It returns what the last handle saw of this holder.
func (t *observer) heldBy(r store.Lease) (st store.State) {
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
func (t *observer) within(what string, expiresIn, ttl time.Duration) {
	t.Helper()
	if expiresIn <= 0 || expiresIn > ttl+t.resolution {
		t.Fatalf("%s: expires in %v, want more than 0 and at most the TTL of %v", what, expiresIn, ttl)
	}
}

// valid returns how much is left of the validity of a lease of ttl whose request was sent at
// start.
func (t *observer) valid(start clock.Instant, ttl time.Duration) time.Duration {
	return validity.Until(start, ttl).Sub(t.now())
}

// lasts requires the lease of r to last at least to the end of its validity, for
// a lease of ttl whose request was sent at start.
func (t *observer) lasts(what string, r store.Lease, ttl time.Duration, start clock.Instant) {
	t.Helper()
	st := t.heldBy(r)
	if least := t.valid(start, ttl); st.ExpiresIn < least {
		t.Fatalf("%s: expires in %v, want at least %v", what, st.ExpiresIn, least)
	}
}

// vacant requires the lock to have, before long, neither a holder nor waiters.
func (t *observer) vacant(what string, name string) {
	t.Helper()
	for _, s := range t.handles() {
		t.eventually(what, func() bool {
			st := t.inspect(s, name)
			return !st.Held && len(st.Queue) == 0
		})
	}
}
