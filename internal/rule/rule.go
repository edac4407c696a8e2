// Package rule defines what a lock means: one pure function for each step that a
// lock can take. A kind of lock is an admission rule, not an implementation.
// Admit decides for mutexes, semaphores, read-write locks, re-entry, the queue and
// fairness. Advance decides the same for owners that asked earlier and wait.
//
// The package does no I/O and reads no clock. The stores in memory and SQL run
// it. The others are checked against it, command by command.
package rule

import (
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Spec is the kind of a lock: its limit, and whether grants share a token. All
// asks for one lock must have the same Spec.
//
//	mutex       {Limit: 1}           every ask has weight 1
//	semaphore   {Limit: n}           weight w of n
//	read-write  {Limit: ReadWrite}   reader: weight 1, writer: weight ReadWrite
type Spec struct {
	Limit int64 `json:"limit"`
	// Shared means that grants of less than the whole limit share a token with the
	// others that are held at the same time: a resource need not tell readers
	// apart, only writers from each other and from readers.
	Shared bool `json:"shared,omitempty"`
}

// ReadWriteLimit is the limit of a read-write lock, more than the number of
// readers can ever be.
const ReadWriteLimit = 1 << 40

// The kinds that have a name.
var (
	Mutex     = Spec{Limit: 1}
	ReadWrite = Spec{Limit: ReadWriteLimit, Shared: true}
)

// Semaphore returns the kind of a lock with n permits.
func Semaphore(n int64) Spec { return Spec{Limit: n} }

// Record is all that a store keeps about one lock. The zero Record is a lock that
// nobody has asked for. It is a value: steps return a new Record and do not
// change the old one.
type Record struct {
	Spec Spec `json:"spec"`
	// Was is the largest limit that any of the leases was granted under, if Resize has
	// changed it since then. It is zero once they fit into Spec.Limit.
	Was int64 `json:"was,omitempty"`
	// Holds are the leases, oldest grant first. Expired ones may still be
	// included; every step drops them first.
	Holds []Hold `json:"holds,omitempty"`
	// Queue has the waiters' places, in order of arrival.
	Queue []Place `json:"line,omitempty"`
	// Tombstones are owners that were released before their acquire arrived.
	Tombstones []Tombstone `json:"tombs,omitempty"`
	// Token is the largest token ever granted.
	Token fence.Token `json:"token"`
	// Broken is about the lease that was broken last, or nil.
	Broken *Broken `json:"broken,omitempty"`
}

// Hold is one lease of the lock.
type Hold struct {
	Owner  string `json:"owner"`
	Meta   string `json:"meta,omitempty"`
	Weight int64  `json:"weight"`
	Count  int64  `json:"count"` // how often entered, from 1
	// Slot is the smallest number that no other lease had when this one began. Slots
	// are all that it has, if every permit is numbered.
	Slot   int64         `json:"slot,omitempty"`
	Slots  Slots         `json:"slots,omitempty"`
	Token  fence.Token   `json:"token"`
	Expiry clock.Instant `json:"expiry"` // held while now < Expiry
	// Granted is when the lease began. It is zero in a record that a version without
	// it has written.
	Granted clock.Instant `json:"granted,omitempty"`
	// Made is the attempt that made the grant, of an owner that makes several. It
	// is empty once another attempt of that owner has been granted the lease.
	Made string `json:"made,omitempty"`
	// Broken means that the lease cannot be renewed any more; see BreakLease.
	Broken bool `json:"broken,omitempty"`
}

// HeldFor returns how long ago the lease began, or 0 if that is not known.
func (h Hold) HeldFor(now clock.Instant) time.Duration {
	if h.Granted == 0 {
		return 0
	}
	return max(now.Sub(h.Granted), 1)
}

// Place is a waiter's position in the queue, itself leased. It keeps what the
// waiter asked for until there is room.
type Place struct {
	Owner  string        `json:"owner"`
	Meta   string        `json:"meta,omitempty"`
	Weight int64         `json:"weight"`
	Expiry clock.Instant `json:"expiry"`
	// Barge means that the waiter is notified when there is room, instead of
	// being handed the lock.
	Barge bool `json:"barge,omitempty"`
	// Attempt is that of the waiter, as in Ask. So are Numbered, Slots,
	// Exact and Ticket.
	Attempt  string `json:"attempt,omitempty"`
	Numbered bool   `json:"numbered,omitempty"`
	Slots    Slots  `json:"slots,omitempty"`
	Exact    bool   `json:"exact,omitempty"`
	Ticket   uint64 `json:"ticket,omitempty"`
}

// Tombstone refuses an owner, or one attempt of an owner, until it expires.
type Tombstone struct {
	Owner  string        `json:"owner"`
	Expiry clock.Instant `json:"expiry"`
}

// Broken is the note about the lease that was broken last.
type Broken struct {
	Owner  string        `json:"owner"`
	Token  fence.Token   `json:"token"`
	Note   string        `json:"note,omitempty"`
	Expiry clock.Instant `json:"expiry"`
}
