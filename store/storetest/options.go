package storetest

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Options adapt the suite to a store. The zero value is right for a store that
// only one handle can reach.
type Options struct {
	// ShortTTL is a TTL long enough for a few requests to the store, and short
	// enough for a test to wait for its end. Zero means 150 ms. If Caps.MinTTL is
	// longer, that is used.
	ShortTTL time.Duration
	// Second opens another, independent handle (connection, client) to the locks
	// of the store that open returned last. If it is set, every contest is
	// between two handles. Leave it nil if a store cannot have two handles.
	Second func(t *testing.T) *store.Store
	// AnyAfterExpiry is set if the waiter that asks first gets a lock whose lease expired,
	// and not the first in the queue: for example, if waiters learn of an expiry by asking, and
	// no step of the store hands such a lock on.
	AnyAfterExpiry bool
	// Observed is set if each handle counts a TTL from when it first sees the lease, so that a
	// handle can see a lease for one TTL longer than the one that has watched it.
	Observed bool
	// GivesUp is set if a call fails when its connection breaks, instead of going on over another
	// one, which then is what the client does. RunFaults uses it.
	GivesUp bool
	// Virtual has every check run in a testing/synctest bubble, with stores of its own,
	// so that waiting takes no time. Then open and Second are called in bubbles as well:
	// what they open measures time with package time, and does no real I/O.
	Virtual bool
}
