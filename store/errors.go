package store

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// What an error of a store can match with errors.Is.
var (
	// ErrBusy: another owner holds the lock. Always a *BusyError.
	ErrBusy = errors.New("lock is held by another owner")
	// ErrNotHeld: the lock is certainly not, or no longer, held by this owner.
	ErrNotHeld = errors.New("lock is not held by this owner")
	// ErrQuorum: fewer nodes than a majority gave the answer that was needed.
	// Always a *QuorumError.
	ErrQuorum = errors.New("no quorum")
	// ErrAmbiguous: it is unknown whether the request took effect.
	ErrAmbiguous = errors.New("outcome unknown")
	// ErrInvalid: the request was refused before anything was sent.
	ErrInvalid = errors.New("invalid request")
	// ErrUnsupported: this store cannot do what was asked.
	ErrUnsupported = errors.New("not supported by this store")
	// ErrKindMismatch: the name is in use for a lock of another kind, or for
	// data that is not a lock.
	ErrKindMismatch = errors.New("name is in use for another kind of lock or for other data")
	// ErrIncomplete: not all locks could be examined. What was found is returned.
	ErrIncomplete = errors.New("incomplete")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store is closed")
)

// BusyError says who holds a lock and for how long.
type BusyError struct {
	Name string
	// Holder and ExpiresIn are what the store answered last. During a wait that answer
	// may be old: see Waiter.
	Holder Holder
	// ExpiresIn is the time until the holder's lease ends unless it is
	// renewed; negative when it never ends by itself.
	ExpiresIn time.Duration
	// Position is this caller's position in the queue when the store was last asked:
	// 1 is the head, 0 means that the caller is not in the queue. Waiters ahead may
	// have left since. Where the owners' ranks decide, as over Redis, a waiter that
	// began earlier may have been inserted ahead.
	Position int
	// Nodes has the answer of each node of a quorum store. Other stores leave it nil.
	Nodes []NodeOutcome
	// Err is why the wait ended. It wraps the error of the caller's context. It is
	// nil if there was no wait.
	Err error
}

func (e *BusyError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "lock %q is held by %s", e.Name, e.Holder)
	switch {
	case e.ExpiresIn < 0:
		b.WriteString(", without an expiry: another kind of client made it, and it stays until it is deleted")
	case e.ExpiresIn > 0:
		fmt.Fprintf(&b, ", expires in %v unless renewed", Round(e.ExpiresIn))
	}
	switch {
	case e.Position == 1:
		b.WriteString("; this caller is next in the queue")
	case e.Position > 1:
		fmt.Fprintf(&b, "; waiters ahead in the queue: %d", e.Position-1)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, " (%v)", e.Err)
	}
	return b.String()
}

// Is makes errors.Is(err, ErrBusy) true.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

func (e *BusyError) Unwrap() error { return e.Err }

// Round shortens a duration to what a person wants to read.
func Round(d time.Duration) time.Duration {
	switch {
	case d > time.Minute || d < -time.Minute:
		return d.Round(time.Second)
	case d > time.Second || d < -time.Second:
		return d.Round(100 * time.Millisecond)
	case d > time.Millisecond || d < -time.Millisecond:
		return d.Round(time.Millisecond)
	}
	return d
}
