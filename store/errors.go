package store

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// What an error of a store can match with errors.Is.
var (
	// ErrBusy: somebody else holds the lock. Always a *BusyError.
	ErrBusy = errors.New("lock is held by somebody else")
	// ErrNotHeld: the lock is certainly not, or no longer, held by this owner.
	ErrNotHeld = errors.New("lock is not held by this owner")
	// ErrQuorum: fewer nodes than a majority could give the answer needed.
	// Always a *QuorumError.
	ErrQuorum = errors.New("no quorum")
	// ErrAmbiguous: it is unknown whether the request took effect.
	ErrAmbiguous = errors.New("outcome unknown")
	// ErrInvalid: the request was refused before anything was sent.
	ErrInvalid = errors.New("invalid request")
	// ErrUnsupported: this store can not do what was asked.
	ErrUnsupported = errors.New("not supported by this store")
	// ErrKindMismatch: the name is in use for a lock of another kind, or for
	// data that is no lock at all.
	ErrKindMismatch = errors.New("name is in use for something else")
	// ErrIncomplete: not all locks could be looked at. What was found is returned.
	ErrIncomplete = errors.New("incomplete")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store is closed")
)

// BusyError says who holds a lock and for how long.
type BusyError struct {
	Name string
	// Holder and ExpiresIn are as the store said when it was last asked. While somebody
	// waits that may be a while ago: see Waiter.
	Holder Holder
	// ExpiresIn is the time until the holder's lease ends unless it is
	// renewed; negative when it never ends by itself.
	ExpiresIn time.Duration
	// Position is our own in the line, 1 the next to come; 0: we do not stand in
	// it. It is that of the last time we asked. Since then those before us may have
	// left; and where the owners' ranks decide, as over Redis, somebody who began to
	// wait earlier may have come.
	Position int
	// Nodes has what each node of a quorum store said, nil elsewhere.
	Nodes []NodeOutcome
	// Err is why the wait ended, nil if there was none: it wraps the error of
	// the caller's context.
	Err error
}

func (e *BusyError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "lock %q is held by %s", e.Name, e.Holder)
	switch {
	case e.ExpiresIn < 0:
		b.WriteString(", without an expiry: it was not made by a lock client that bounds its leases, and stays until somebody deletes it")
	case e.ExpiresIn > 0:
		fmt.Fprintf(&b, ", expires in %v unless renewed", Round(e.ExpiresIn))
	}
	switch {
	case e.Position == 1:
		b.WriteString("; we are next")
	case e.Position > 1:
		fmt.Fprintf(&b, "; %d wait before us", e.Position-1)
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
