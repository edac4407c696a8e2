package rule

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
)

// Verdict is the result of one step.
type Verdict uint8

// The verdicts. The zero Verdict is none of them.
const (
	_ Verdict = iota
	// Granted means that the owner now has a lease: a new one, or, if
	// Answer.Again is set, the one that it already had.
	Granted
	// Busy means that there is no room, or that others wait ahead of this owner.
	Busy
	// Mismatch means that the ask does not fit this lock: the lock is in use as
	// another kind, the weight exceeds its limit, or the weight exceeds that of
	// the owner's lease. (A lease does not grow: two readers that both wanted to
	// become the writer would wait for each other for ever.)
	Mismatch
	// Buried means that this owner was released before it asked, or that its lease
	// was broken; see Release and BreakLease.
	Buried
	// Done means that the lease was renewed or released, the place given up, or
	// the token confirmed.
	Done
	// NotHeld means that this owner has no lease and, for Leave, no place either.
	NotHeld
)

var verdictNames = [...]string{"no verdict", "granted", "busy", "mismatch", "buried", "done", "not held"}

func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict %d", v)
}

// Answer is a verdict and its evidence.
type Answer struct {
	Verdict Verdict
	// Again is set if Granted confirmed or re-entered an existing lease.
	Again bool
	// Token is the token of the owner's lease, for Granted and Done.
	Token fence.Token
	// Slot is the slot of the owner's lease, for Granted. Slots are all of them, if every
	// permit is numbered.
	Slot  int64
	Slots Slots
	// Spec is the kind that is in use, for Mismatch.
	Spec Spec
	// Count is how many times the owner has entered the lock after this step, for
	// Granted and Done. It is zero after the last release.
	Count int64
	// ExpiresIn is how long the owner's lease lasts unless it is renewed
	// (Granted, Done), or the blocker's lease or place (Busy, Mismatch).
	ExpiresIn time.Duration
	// Blocker is the holder in the way, for Busy, and for Mismatch if anybody is. Of
	// several, it is the one that expires first.
	Blocker Blocker
	// Position is the owner's position in the queue after this step. 1 is the
	// head; 0 means that it has no place.
	Position int
}

// Blocker is an owner that another owner has to wait for.
type Blocker struct {
	Owner string
	Meta  string
	// Waiting is set if the blocker does not hold the lock but waits ahead in the
	// queue.
	Waiting bool
}
