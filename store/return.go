package store

import "context"

// Returner is a Waiter that can release a lock and rejoin its queue in one step,
// for a process that is about to want the lock again. Under contention this
// halves the cost of a turn.
type Returner interface {
	Waiter

	// Return releases the lease of r as Release does, with the same errors, and
	// blocks as Release does. If the lock thereby passes to another owner, Return
	// also reserves a place in the queue for next, a request for the same lock
	// with a new owner. It never acquires a free lock for next. standing reports
	// whether there is such a place, or may be one.
	//
	// Claim the place promptly by passing next unchanged to Wait, or abandon it
	// with Release, which returns ErrNotHeld and cleans up in the background.
	// If Wait claims the place, Grant.Since counts from just before the call of
	// Return. Until then nobody refreshes the place: it may be granted the lock,
	// and it lasts for at most next.TTL.
	Return(ctx context.Context, r, next Request) (standing bool, err error)
}
