// Package rule is the meaning of a lock: one pure function for each step a
// lock can take. A lock kind is an admission rule, not an implementation:
// mutex, semaphore, read-write, re-entry, the line and fairness are all Admit,
// and Advance, which is Admit for those who asked before.
//
// The rule does no I/O and never asks what time it is. Stores that can run it
// do (memory, SQL); the others are checked against it, command by command.
package rule

import (
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Spec is the kind of a lock: how much of it there is, and who may share it.
// All asks for one lock must bring the same Spec.
//
//	mutex       {Limit: 1}           every ask has weight 1
//	semaphore   {Limit: n}           weight w of n
//	read-write  {Limit: ReadWrite}   reader: weight 1, writer: weight ReadWrite
type Spec struct {
	Limit int64 `json:"limit"`
	// Shared grants (those of less than the whole limit) leave the token as it
	// is: readers do not need to be told apart by a resource, writers do.
	Shared bool `json:"shared,omitempty"`
}

// ReadWriteLimit is the limit of a read-write lock: more readers than there can be.
const ReadWriteLimit = 1 << 40

// The kinds that have a name.
var (
	Mutex     = Spec{Limit: 1}
	ReadWrite = Spec{Limit: ReadWriteLimit, Shared: true}
)

// Semaphore is a lock of n permits.
func Semaphore(n int64) Spec { return Spec{Limit: n} }

// Record is all a store keeps about one lock. The zero Record is a lock nobody
// ever asked for. It is a value: steps return a new one and leave the old as
// it was.
type Record struct {
	Spec Spec `json:"spec"`
	// Holds are the leases, oldest grant first. Expired ones may still be
	// here; every step drops them first.
	Holds []Hold `json:"holds,omitempty"`
	// Line are the waiters' places, in order of arrival.
	Line []Place `json:"line,omitempty"`
	// Tombs are owners that were released before their acquire arrived.
	Tombs []Tomb `json:"tombs,omitempty"`
	// Token is the largest that was ever granted or reserved.
	Token fence.Token `json:"token"`
}

// MaxSpare is the most tokens that can be reserved at once.
const MaxSpare = 1 << 16

// Hold is one lease of the lock.
type Hold struct {
	Owner  string        `json:"owner"`
	Meta   string        `json:"meta,omitempty"`
	Weight int64         `json:"weight"`
	Count  int64         `json:"count"` // of re-entries, from 1
	Token  fence.Token   `json:"token"`
	Expiry clock.Instant `json:"expiry"` // held while now < Expiry
}

// Place is one waiter's position in the line; it is itself leased. It is the
// waiter's ask, kept until there is room for it.
type Place struct {
	Owner  string        `json:"owner"`
	Meta   string        `json:"meta,omitempty"`
	Weight int64         `json:"weight"`
	Expiry clock.Instant `json:"expiry"`
	Spare  int           `json:"spare,omitempty"` // tokens to reserve
	// Barge: it is told that there is room for it instead of being let in.
	Barge bool `json:"barge,omitempty"`
}

// Tomb keeps an owner from being admitted.
type Tomb struct {
	Owner  string        `json:"owner"`
	Expiry clock.Instant `json:"expiry"`
}
