package zkstore

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// An operator breaks a lease by a mark in the record of its place. From then on no renewal
// counts: each reads the record after a write that proves the session alive. The place
// stays, and with it the lock is taken, until the owner's store removes it: with the
// release, or when the lease has not been renewed for its TTL. If the process is dead, its
// session ends. If neither happens, the store that breaks the lease removes the place.

// errBroken means that an operator has broken the lease that a request is about.
var errBroken = fmt.Errorf("%w: the lease of this owner was broken; a new attempt needs a new owner", store.ErrNotHeld)

// target is what a store knows of a lease that it is to break.
type target struct {
	// held is set if the owner has a place that holds the lock, with this token and this TTL.
	held  bool
	token fence.Token
	ttl   time.Duration
	// marked is set if the lease was broken, which the store has known for so long.
	marked bool
	known  time.Duration
	// noted is set if a lease of the owner with the token of the request was broken lately.
	noted bool
	// foreign is set if the owner is another kind of client.
	foreign bool
}

// breakStep is what is to be done about a target.
type breakStep int

const (
	breakNothing    breakStep = iota // nothing: the owner has no such lease
	breakForeign                     // nothing: only another kind of client can end the lease
	breakOver                        // nothing: the lease was broken and is over
	breakWait                        // nothing: the lease was broken and is not over yet
	breakMark                        // break the lease
	breakMarkAndEnd                  // the same, and free the lock
	breakEnd                         // free the lock
)

// toBreak returns what is to be done, and for how long the lease can still last.
func (s target) toBreak(r store.BreakRequest) (do breakStep, left time.Duration) {
	switch {
	case s.held && s.token == r.Token:
	case s.noted:
		return breakOver, 0
	case s.foreign:
		return breakForeign, 0
	default:
		return breakNothing, 0
	}
	switch left := s.ttl - s.known; {
	case !s.marked && r.Now:
		return breakMarkAndEnd, 0
	case !s.marked:
		return breakMark, s.ttl
	case r.Now, left <= 0: // whatever was renewed before the mark is over by then
		return breakEnd, 0
	default:
		return breakWait, left
	}
}
