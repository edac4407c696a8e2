package store

import (
	"context"
	"fmt"
)

// Rejoiner is a Waiter that can release a lock and rejoin its queue in one step,
// for a process that is about to want the lock again. Caps.Rejoins reports
// whether that pays; where it does, it halves the cost of a turn under
// contention.
type Rejoiner interface {
	Waiter

	// ReleaseAndRejoin releases the lease of r as Release does, with the same
	// errors, and blocks as Release does. If the lock thereby passes to another
	// owner, it also reserves a place in the queue for next, a request for the
	// same lock with a new owner. It never acquires a free lock for next. The
	// result queued reports whether there is such a place, or may be one.
	//
	// Claim the place promptly by passing next unchanged to Wait, or abandon it
	// with Release, which returns ErrNotHeld and cleans up in the background. If
	// Wait claims the place, Grant.Since counts from just before the call of
	// ReleaseAndRejoin. Until then nobody refreshes the place: it may be granted
	// the lock, and it lasts for at most next.TTL.
	ReleaseAndRejoin(ctx context.Context, r ReleaseRequest, next WaitRequest) (queued bool, err error)
}

// CheckRejoin returns nil if a store of those capabilities can release the lease of r and
// make a place for next. Otherwise the error matches ErrInvalid or ErrUnsupported.
func CheckRejoin(r ReleaseRequest, next WaitRequest, c Caps) error {
	if err := r.Check(c); err != nil {
		return err
	}
	if err := next.Check(c); err != nil {
		return err
	}
	if r.Name != next.Name || r.Owner == next.Owner {
		return fmt.Errorf("%w: release and rejoin of lock %q: the place has to be for the same lock, and of another owner", ErrInvalid, r.Name)
	}
	return nil
}
