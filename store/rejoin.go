package store

import "context"

// Rejoiner is a Waiter that can release a lock and rejoin its queue in one step,
// for a process that is about to want the lock again. Caps.Rejoins reports
// whether that pays; where it does, it halves the cost of a turn under
// contention.
type Rejoiner interface {
	Waiter

	// ReleaseAndRejoin releases the lease of r as Release does, with the same
	// errors, and blocks as Release does. If the lock thereby passes to another
	// owner, it also reserves a place in the queue for next, a request for the
	// same lock with a new owner. It never acquires a free lock for next. standing
	// reports whether there is such a place, or may be one.
	//
	// Claim the place promptly by passing next unchanged to Wait, or abandon it
	// with Release, which returns ErrNotHeld and cleans up in the background. If
	// Wait claims the place, Grant.Since counts from just before the call of
	// ReleaseAndRejoin. Until then nobody refreshes the place: it may be granted
	// the lock, and it lasts for at most next.TTL.
	ReleaseAndRejoin(ctx context.Context, r ReleaseRequest, next WaitRequest) (standing bool, err error)
}
