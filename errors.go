package leasehold

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/holds"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/store"
)

// Errors of this package, to be matched with errors.Is. BusyError, QuorumError and
// LostError carry the evidence, for errors.As.
var (
	// ErrBusy means that another owner holds the lock, or waits ahead for the rest of
	// it, and that the wait was over or none was asked for. It is always a *BusyError.
	ErrBusy = store.ErrBusy
	// ErrLost means that the lease ended before it was released. It is always a
	// *LostError, whose Cause tells why.
	ErrLost = holds.ErrLost
	// ErrReleased means that the holder released the lease.
	ErrReleased = holds.ErrReleased
	// ErrNotHeld means that nobody holds the lock, or that this owner does not.
	ErrNotHeld = store.ErrNotHeld
	// ErrKindMismatch means that the name is in use for another kind of lock, or
	// for data that is no lock.
	ErrKindMismatch = store.ErrKindMismatch
	// ErrUnsupported means that the store cannot do what was asked.
	ErrUnsupported = store.ErrUnsupported
	// ErrAmbiguous means that the request may or may not have taken effect.
	ErrAmbiguous = store.ErrAmbiguous
	// ErrQuorum means that too few nodes could answer. It is always a
	// *QuorumError.
	ErrQuorum = store.ErrQuorum
	// ErrInvalid means that a name or an option is wrong. Nothing was sent.
	ErrInvalid = store.ErrInvalid
)

// BusyError says who holds a lock and for how long. It matches ErrBusy, and also
// the error of the context if that ended the wait.
type BusyError = store.BusyError

// QuorumError has the answer of each node. It matches ErrQuorum.
type QuorumError = store.QuorumError

// Token is a fencing token. Package fence says what a resource does with it.
type Token = fence.Token

// Holder describes who holds a lock.
type Holder = store.Holder

// LostError says why a lease was lost. It matches ErrLost.
type LostError struct {
	Name string
	// Cause is the way in which the lease was lost, for programs.
	Cause LossCause
	// Reason describes the cause for people, and may have details.
	Reason string
	// Err is the last answer of the store, or nil if there was none.
	Err error
	// Broken says who broke the lease and why, if somebody did and the store told in time.
	// Cause is LostDenied then, and Reason says the same in words.
	Broken *store.Broken
}

// LossCause is the way in which a lease was lost.
type LossCause uint8

// The causes of a loss. None of them is 0.
const (
	// LostExpired: the validity ended before a renewal succeeded. The store may have
	// been unreachable or slow, or the process may have been stopped.
	LostExpired LossCause = 1 + iota
	// LostDenied: the store answered that this owner no longer holds the lock. The
	// lease ended there early, or was removed.
	LostDenied
	// LostMaxHold: LockOptions.MaxHold was over.
	LostMaxHold
	// LostLateGrant: the store granted the lock, but the answer took so long that
	// the validity was over when it arrived. There never was a Lease.
	LostLateGrant
)

var lossCauses = [...]string{
	LostExpired:   "expired",
	LostDenied:    "denied by the store",
	LostMaxHold:   "maximum hold reached",
	LostLateGrant: "granted too late",
}

// String returns the cause in lower-case words, such as "denied by the store".
func (c LossCause) String() string {
	if int(c) < len(lossCauses) && c != 0 {
		return lossCauses[c]
	}
	return fmt.Sprintf("cause %d", uint8(c))
}

// lostError returns the error of a loss.
func lostError(l holds.Loss) error {
	e := &LostError{Name: l.Name, Cause: LostExpired, Reason: l.Reason, Err: l.Err, Broken: l.Broken}
	switch {
	case l.Late:
		e.Cause = LostLateGrant
	case l.Cause == leasefsm.Denied:
		e.Cause = LostDenied
	case l.Cause == leasefsm.HeldMax:
		e.Cause = LostMaxHold
	}
	return e
}

func (e *LostError) Error() string {
	s := fmt.Sprintf("lease of lock %q lost: %s", e.Name, e.Reason)
	if e.Err != nil && e.Broken == nil {
		s += fmt.Sprintf(" (last answer: %v)", e.Err)
	}
	return s
}

// Is makes errors.Is(err, ErrLost) true.
func (e *LostError) Is(target error) bool { return target == ErrLost }

func (e *LostError) Unwrap() error { return e.Err }
