package leasehold

import (
	"errors"
	"fmt"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// What an error of this package can match with errors.Is. Errors carry their
// evidence with them: see BusyError, QuorumError and LostError for errors.As.
var (
	// ErrBusy: somebody else holds the lock. The wait was over, or none was
	// asked for. A *BusyError says who and for how long.
	ErrBusy = store.ErrBusy
	// ErrLost: the lease ended before it was released. A *LostError says why.
	ErrLost = errors.New("lease lost")
	// ErrReleased: the lease was released by its holder.
	ErrReleased = errors.New("lease was released")
	// ErrKindMismatch: the name is in use for another kind of lock, or for
	// something that is no lock.
	ErrKindMismatch = store.ErrKindMismatch
	// ErrUnsupported: the store can not do what was asked.
	ErrUnsupported = store.ErrUnsupported
	// ErrAmbiguous: whether the request took effect is unknown.
	ErrAmbiguous = store.ErrAmbiguous
	// ErrQuorum: too few nodes could answer. A *QuorumError has each answer.
	ErrQuorum = store.ErrQuorum
	// ErrInvalid: a name or an option is wrong; nothing was sent.
	ErrInvalid = store.ErrInvalid
)

// BusyError says who holds a lock and for how long. It matches ErrBusy, and
// after a wait that was cut off by its context also the context's error.
type BusyError = store.BusyError

// QuorumError has what each node said. It matches ErrQuorum.
type QuorumError = store.QuorumError

// Token is a fencing token: see package fence for what a resource does with it.
type Token = fence.Token

// Holder says who has a lock.
type Holder = store.Holder

// LostError says why a lease was lost. It matches ErrLost.
type LostError struct {
	Name string
	// Reason in words.
	Reason string
	// Err is the last answer of the store, nil when there was none.
	Err error
}

func (e *LostError) Error() string {
	s := fmt.Sprintf("lease of lock %q lost: %s", e.Name, e.Reason)
	if e.Err != nil {
		s += fmt.Sprintf(" (last answer: %v)", e.Err)
	}
	return s
}

// Is makes errors.Is(err, ErrLost) true.
func (e *LostError) Is(target error) bool { return target == ErrLost }

func (e *LostError) Unwrap() error { return e.Err }
