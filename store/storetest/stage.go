package storetest

import (
	"context"
	crand "crypto/rand"
	"math/rand/v2"
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
	// first and second are handles to the same locks. If there is only one, second is nil.
	first, second *store.Store
	// reopen opens another pair of handles, for checks that close them.
	reopen  func() (first, second *store.Store)
	options Options
	// patience bounds the wait for an expected event.
	patience time.Duration
}

// stage is where a check takes place: the store, its limits, and the time.
type stage struct {
	reporter
	subject
	// least is the shortest TTL that the store accepts.
	least time.Duration
	// resolution is the unit to which the store rounds TTLs up.
	resolution time.Duration
	// long is a TTL that does not end during a check.
	long time.Duration
}

// now returns the elapsed time: that of the bubble, if time is virtual.
func (t *stage) now() clock.Instant {
	if t.options.Virtual {
		return clock.Instant(time.Now().UnixNano())
	}
	return clock.System().Now()
}

// other returns the second handle, or the first if there is only one.
func (t *stage) other() *store.Store {
	if t.second != nil {
		return t.second
	}
	return t.first
}

// handles returns all handles.
func (t *stage) handles() []*store.Store {
	if t.second != nil {
		return []*store.Store{t.first, t.second}
	}
	return []*store.Store{t.first}
}

// name returns an unused lock name.
func (t *stage) name() string { return "storetest/" + crand.Text() }

// request returns the request of a new attempt.
func (t *stage) request(name string, ttl time.Duration) store.Lease {
	if t.options.Virtual {
		time.Sleep(time.Microsecond) // requests that are made at one instant have no order
	}
	h := store.Holder{Host: "host-of-the-holder", PID: 4711, Purpose: "nightly invoices", Since: time.Now()}
	return store.Lease{Name: name, Owner: store.NewOwner(), Meta: h.Encode(), TTL: ttl}
}

// short is a lease that ends soon.
type short struct {
	store.Lease
	store.Grant
	// start is when the request was sent, and back is when its reply arrived.
	start, back clock.Instant
}

// overdue reports whether the validity of l has ended. From then on the store may
// let it expire.
func (t *stage) overdue(l short) bool { return t.now() >= validity.Until(l.start, l.TTL) }

// eventually waits until ok returns true, and fails the check if it does not.
func (t *stage) eventually(what string, ok func() bool) {
	t.Helper()
	for start := t.now(); !ok(); t.pause() {
		if t.now().Sub(start) > t.patience {
			t.Fatalf("waited %v in vain: %s", t.patience, what)
		}
	}
}

// pause sleeps between two polls, for a random time, so that contenders do not poll in step.
func (t *stage) pause() {
	select {
	case <-t.Context().Done():
	case <-time.After(time.Millisecond + rand.N(6*time.Millisecond)):
	}
}

// applicant returns the request of a new attempt that may wait.
func (t *stage) applicant(name string, ttl time.Duration) store.WaitRequest {
	r := store.WaitRequest{Lease: t.request(name, ttl)}
	r.Owner = store.NewOwnerAt(time.Now())
	return r
}
