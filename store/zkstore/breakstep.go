package zkstore

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// An operator breaks a lease by a mark in the record of its place. From then on every renewal
// is refused: it reads the record after a write that proves the session alive. The place
// stays, and keeps the lock taken, until the owner's store removes it: with the release, or
// when the lease has not been renewed for its TTL. If the process is dead, the place ends with
// its session. If none of this happens, the store that broke the lease removes the place.

// errBroken means that an operator has broken the lease that a request is about.
var errBroken = fmt.Errorf("%w: its lease was broken", store.ErrNotHeld)

// target is what a store knows of a lease that it is to break.
type target struct {
	// held is set if the owner has a place that holds the lock, with this token and this TTL.
	held  bool
	token fence.Token
	ttl   time.Duration
	// marked is set if the lease was broken, and known is for how long this store has known
	// that.
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

// toBreak returns what is to be done, and how long the lease can still last.
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
