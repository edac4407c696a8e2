package observe

import (
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// View is what an Observer knows after a look. It does not change any more.
type View struct {
	// ID grows by one with each look. Zero means that no look has ended yet.
	ID uint64
	// At is when the look began, and Took how long it lasted.
	At   time.Time
	Took time.Duration
	// Err is why the look failed, or matches store.ErrIncomplete if it found some of the
	// locks only. After a look that failed, the rest is as it was before.
	Err error
	// SeenAt is when the look began that Locks are from.
	SeenAt time.Time
	// Locks are held, or may be held. They are sorted by name.
	Locks []Lock
	// Nodes is the worst that each node of a quorum store answered, by address; nil in other stores.
	Nodes []store.NodeOutcome
	// Events are the latest changes, oldest first.
	Events []Event
	// Counts are about the time since the Observer was made.
	Counts Counts
}

// Lock is one lock, and the leases of it.
type Lock struct {
	// State is as List returned it. Queue and Broken are those of the last Inspect, which
	// was at InspectedAt. InspectedAt is zero if there was none yet.
	store.State
	InspectedAt time.Time
	// Leases are those that hold the lock, and then those that may hold it.
	Leases []Lease
}

// Lease is one lease of a lock.
type Lease struct {
	// Holding has its Kind.
	store.Holding
	// MayHold reports that it is undecided whether the lease holds the lock.
	MayHold bool
	// TTL is the most of the lease that was ever seen to be left. It is zero for a lease that
	// never ends.
	TTL time.Duration
}

// Kind is what happened.
type Kind string

// The kinds of events.
const (
	// Acquired means that there is a new holder.
	Acquired Kind = "acquired"
	// HandedOver means that the lease of a mutex ended, and that another owner has it now. It was
	// released, as far as the store lets that be seen.
	HandedOver Kind = "handed-over"
	// Released means that a lease is gone before it would have expired.
	Released Kind = "released"
	// Lost means that a lease is gone because it was not renewed in time, or was broken.
	Lost Kind = "lost"
	// Broken means that an operator has broken a lease. It may not be over yet.
	Broken Kind = "broken"
	// Over means that a lease is gone, and that the looks do not tell whether it was released.
	Over Kind = "over"
)

// Causes of Lost.
const (
	CauseExpired = "expired"
	CauseBroken  = "broken"
)

// Event is one change.
type Event struct {
	// ID grows by one with each event.
	ID uint64
	// Time is when the change was seen, and After the time of the look before: it happened
	// in between.
	Time, After time.Time
	Kind        Kind
	// Name is the name of the lock.
	Name string
	// Lease is the lease that the event is about, as it was seen last, with its Kind. For
	// HandedOver it is the new one, and From the one before.
	Lease store.Holding
	From  *store.Holding
	// Cause says why a lease is lost, in one word: CauseExpired or CauseBroken.
	Cause string
	// Broken says who broke the lease and why, if that is known.
	Broken *store.Broken
}

// Counts are numbers of events.
type Counts struct {
	Acquired, HandedOver, Released, Over, Broken uint64
	LostExpired, LostBroken                      uint64
	Looks, FailedLooks                           uint64
}

func (c *Counts) add(e Event) {
	switch e.Kind {
	case Acquired:
		c.Acquired++
	case HandedOver:
		c.HandedOver++
	case Released:
		c.Released++
	case Over:
		c.Over++
	case Broken:
		c.Broken++
	case Lost:
		if e.Cause == CauseBroken {
			c.LostBroken++
		} else {
			c.LostExpired++
		}
	}
}

// Under returns the locks whose names begin with prefix.
func (v *View) Under(prefix string) []Lock {
	from, _ := slices.BinarySearchFunc(v.Locks, prefix, func(l Lock, p string) int { return strings.Compare(l.Name, p) })
	to := from
	for to < len(v.Locks) && strings.HasPrefix(v.Locks[to].Name, prefix) {
		to++
	}
	return v.Locks[from:to]
}

// Lock returns the lock with that name, or nil if it was not held.
func (v *View) Lock(name string) *Lock {
	at, found := slices.BinarySearchFunc(v.Locks, name, func(l Lock, n string) int { return strings.Compare(l.Name, n) })
	if !found {
		return nil
	}
	return &v.Locks[at]
}

// Waiting returns the number of waiters, of which a store shows store.MaxQueue for each lock
// at most, and how long the one that came first has waited, by its own clock.
func Waiting(locks []Lock, now time.Time) (n int, longest time.Duration) {
	for _, l := range locks {
		n += len(l.Queue)
		for _, p := range l.Queue {
			if !p.Holder.Since.IsZero() {
				longest = max(longest, now.Sub(p.Holder.Since))
			}
		}
	}
	return n, longest
}
