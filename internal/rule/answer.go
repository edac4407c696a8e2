package rule

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
)

// Verdict is the rule's word on one step.
type Verdict uint8

// The verdicts. The zero Verdict is none of them.
const (
	_ Verdict = iota
	// Granted: the owner has a lease now. It is a new one, or, when
	// Answer.Again is set, the one the owner already had.
	Granted
	// Busy: there is no room, or others wait before this owner.
	Busy
	// Mismatch: what was asked for does not fit this lock: it is in use as
	// another kind, the weight is not within its limit, or it is more than
	// the owner's own lease has (a lease does not grow: two readers that both
	// want to become the writer would wait for each other for ever).
	Mismatch
	// Buried: this owner was released before it asked; see Release.
	Buried
	// Done: the lease was renewed or released, the place given up, or tokens
	// were drawn.
	Done
	// NotHeld: there is no lease (for Leave: no place either) of this owner.
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
	// Again is set when Granted confirmed or re-entered a lease that was
	// already there.
	Again bool
	// Token is that of the owner's lease, for Granted and Done; for Draw it is
	// the first one drawn.
	Token fence.Token
	// Count is how often the owner is inside after this step, for Granted and
	// Done; zero after the last release.
	Count int64
	// ExpiresIn is how long the owner's lease lasts unless it is renewed
	// (Granted, Done), or the blocker's lease or place (Busy, Mismatch).
	ExpiresIn time.Duration
	// Blocker is who is in the way, for Busy, and for Mismatch where somebody
	// is: of all that are, the one that will be gone first.
	Blocker Blocker
	// Position is the owner's own in the line after this step; 1 is the head,
	// 0 means it has no place.
	Position int
}

// Blocker is the one an owner has to wait for.
type Blocker struct {
	Owner string
	Meta  string
	// Waiting says that it does not hold the lock itself but stands in the
	// line before this owner.
	Waiting bool
}
