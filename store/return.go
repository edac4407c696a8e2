package store

import "context"

// Returner is a Waiter that can release a lock and take a place in its line at once,
// for a process that is about to want it again: in a crowd that is half of what a
// turn costs.
type Returner interface {
	Waiter

	// Return ends the lease of r as Release does, with the same errors, and, where
	// somebody else gets the lock by that, leaves a place in its line for next: of
	// the same lock, and of an owner that is new. It takes no lock that nobody has.
	// standing says whether there is such a place, or may be.
	//
	// The place is then to be used soon: by Wait with next as it is, whose Grant.Since
	// counts from just before Return was called; or it is given up by Release, which
	// answers ErrNotHeld and sees to the rest in the background. Until then nobody
	// refreshes it: it may be granted the lock, and lasts for a TTL at most.
	Return(ctx context.Context, r, next Request) (standing bool, err error)
}
