package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

// claim is one lease, as its holder sees it.
type claim struct {
	k            *worker
	lock         int
	owner        int
	weight       int64
	lease        *leasehold.Lease
	ttl, notice  time.Duration
	minHold      time.Duration
	maxHold      time.Duration
	at           time.Duration
	last         bool // of the rounds after all faults
	giving, over bool // the holder has begun to release; it has ended
	freed        bool // an operator has freed the lock at once, or is about to, and the holder may not know it
}

// ended reports whether the holder has been notified that the lease is over.
func (c *claim) ended() bool {
	select {
	case <-c.lease.Done():
		return true
	default:
		return false
	}
}

// kind is the kind of the lock.
func (c *claim) kind() store.Kind { return c.k.w.script.kind(c.lock) }

// shares reports whether the claim shares its token with others, as a reader does.
func (c *claim) shares() bool {
	return store.Lease{Kind: c.kind(), Weight: c.weight}.SharesToken()
}

// slot is the slot within which its token is compared with others.
func (c *claim) slot() int {
	if c.kind().Shared {
		return 0
	}
	return c.lease.Slot()
}

// excludes reports whether two leases of a lock cannot be valid at once, whatever others are.
func (c *claim) excludes(o *claim) bool {
	return c.kind().Shared && !(c.shares() && o.shares()) || !c.kind().Shared && c.slot() == o.slot()
}

type noteKind uint8

const (
	begins noteKind = iota
	granted
	refused
	wrote
	extended
	releasing
	released
	wrong
	named
)

// note is a report of a worker.
type note struct {
	kind  noteKind
	claim *claim
	lock  int // of begins, and of named
	// weight is how much of the lock, of begins.
	weight int64
	err    error
	text   string
	// frees: of named, the lock becomes free before the holder is notified.
	frees bool
	by    *worker
	at    time.Duration // by the timers; a paused client's are read later
}
