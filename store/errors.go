package store

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors that a store returns, to be matched with errors.Is. One error may match
// several of them.
var (
	// ErrBusy means that another owner holds the lock, or waits ahead for the rest of
	// it. The error is always a *BusyError.
	ErrBusy = errors.New("lock is held by another owner")
	// ErrNotHeld means that this owner certainly does not hold the lock, or no
	// longer does.
	ErrNotHeld = errors.New("lock is not held by this owner")
	// ErrQuorum means that too few nodes gave the answer that was needed. The
	// error is always a *QuorumError.
	ErrQuorum = errors.New("no quorum")
	// ErrAmbiguous means that the request may or may not have taken effect.
	ErrAmbiguous = errors.New("outcome unknown")
	// ErrInvalid means that a request, or the URL or the options of a store, is
	// wrong. Nothing was sent.
	ErrInvalid = errors.New("invalid request")
	// ErrUnsupported means that this store cannot do what was asked.
	ErrUnsupported = errors.New("not supported by this store")
	// ErrKindMismatch means that the name is in use for a lock of another kind,
	// or for data that is not a lock.
	ErrKindMismatch = errors.New("name is in use for another kind of lock or for other data")
	// ErrIncomplete means that the store could not look at all locks. The locks
	// it found are returned with the error.
	ErrIncomplete = errors.New("incomplete")
	// ErrTimeLimit is the cause of a context that has ended after Caps.Timeout. No method of a
	// Store returns it: the error is then a *QuorumError.
	ErrTimeLimit = errors.New("no success within the store's time limit")
	// ErrClosed means that the store was closed.
	ErrClosed = errors.New("store is closed")
)

// BusyError reports who holds a lock and for how long.
type BusyError struct {
	// Name is the name of the lock.
	Name string
	// Holder holds the lock. If Holder.Waiting is set, there would be room for the
	// caller beside the holders of the lock, but this waiter came before. Holder,
	// ExpiresIn and Position are what the store knew when it last looked; during a
	// wait that may be some time ago (see Store.Wait).
	Holder Holder
	// Undecided reports that Holder may hold the lock: that depends on those of Nodes that
	// do not answer. See State.Undecided.
	Undecided bool
	// ExpiresIn is the longest that the holder's lease, or the waiter's place, can
	// last unless it is renewed; see State.ExpiresIn. It is negative if the lease
	// never ends by itself.
	ExpiresIn time.Duration
	// Position is the caller's place in the queue of waiters: 1 is the next to
	// be granted the lock, 0 means that the caller is not in the queue. It may
	// be out of date: waiters before the caller may have left. In a store that
	// orders waiters by rank (see Rank), a waiter that began earlier may have
	// joined in front.
	Position int
	// Nodes is the answer of each node of a quorum store; nil in other stores.
	Nodes []NodeOutcome
	// Err is the reason why the wait ended, or nil if the caller did not wait.
	// It wraps the error of the caller's context.
	Err error
}

func (e *BusyError) Error() string {
	var b strings.Builder
	verb := "is held by"
	switch {
	case e.Holder.Waiting:
		verb = "is reserved for"
	case e.Undecided:
		verb = "may be held by"
	}
	fmt.Fprintf(&b, "lock %q %s %s", e.Name, verb, e.Holder)
	switch {
	case e.Holder.Waiting && e.Position > 0:
		b.WriteString(", which waits too")
	case e.Holder.Waiting:
		b.WriteString(", which waits ahead in the queue")
	case e.ExpiresIn < 0:
		b.WriteString(", without an expiry: another kind of client made it, and it stays until it is deleted")
	case e.ExpiresIn > 0 && e.Undecided:
		fmt.Fprintf(&b, ", for at most %v unless renewed", Round(e.ExpiresIn))
	case e.ExpiresIn > 0:
		fmt.Fprintf(&b, ", expires in %v unless renewed", Round(e.ExpiresIn))
	}
	if id := e.Holder.TraceID(); id != "" {
		b.WriteString(", trace " + id)
	}
	switch {
	case e.Position == 1:
		b.WriteString("; this caller is next in the queue")
	case e.Position > 1:
		fmt.Fprintf(&b, "; waiters ahead in the queue: %d", e.Position-1)
	}
	if silent := Silent(e.Nodes); e.Undecided && silent != "" {
		b.WriteString(": " + silent)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, " (%v)", e.Err)
	}
	return b.String()
}

// Is reports whether target is ErrBusy.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// Unwrap returns e.Err.
func (e *BusyError) Unwrap() error { return e.Err }

// Round rounds a duration for people to read: to whole seconds above a minute,
// to tenths of a second above a second, to milliseconds above a millisecond.
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
