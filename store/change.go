package store

import (
	"context"
	"fmt"
)

// Changer is a Store that can change a lock while it is held. The methods are safe for
// concurrent use, send nothing if the request is invalid, and block for the store's
// answer.
type Changer interface {
	Store

	// Downgrade makes the writer of a read-write lock a reader, without a moment in
	// which the lock is free, and renews the lease. r is the writer's lease as it was
	// granted; afterwards its Weight is 1. Readers that wait get the lock as well, up to
	// the first writer in the queue.
	//
	// The grant's token is larger than that of the writer, and the readers share it.
	// The error matches ErrNotHeld if r.Owner certainly has no lease, or if its lease was
	// broken, since a downgrade would renew it (see Breaker). After any other
	// error the lease may be a reader's, and calling again is safe: a reader is granted
	// what it has.
	Downgrade(ctx context.Context, r Lease) (Grant, error)

	// Resize changes the number of permits of the semaphore called name, if it is in
	// use. Leases stay as they are. If they no longer fit, nobody is granted a permit
	// until they do. Waits for the lock end with an error that matches ErrKindMismatch,
	// since they asked for the earlier number.
	//
	// A lock that nobody uses has no number of permits, and neither is that an error nor
	// a lock that has the new number already; so calling again is safe. The error
	// matches ErrKindMismatch (as *KindError) if the lock is in use as another kind than
	// from.
	//
	// A store with several nodes keeps the number: the error matches ErrUnsupported, and says to
	// use a lock with another name.
	Resize(ctx context.Context, name string, from, to Kind) error
}

// CheckDowngrade is Lease.Check for Changer.Downgrade.
func (l Lease) CheckDowngrade(c Caps) error {
	if !l.Kind.Shared || l.SharesToken() {
		return fmt.Errorf("%w: only the writer of a read-write lock can be downgraded, and this is a %v with weight %d", ErrInvalid, l.Kind, max(l.Weight, 1))
	}
	return l.Check(c)
}

// CheckResize returns nil if a lock called name can be resized so in a store of those
// capabilities. Otherwise the error matches ErrInvalid or ErrUnsupported.
func CheckResize(name string, from, to Kind, c Caps) error {
	if err := CheckName(name); err != nil {
		return err
	}
	for _, k := range []Kind{from, to} {
		if k.Shared || k.Limit < 0 {
			return fmt.Errorf("%w: resize %q from a %v to a %v: both have to be semaphores", ErrInvalid, name, from, to)
		}
		if err := (Lease{Name: name, Kind: k}).CheckKind(c); err != nil {
			return err
		}
	}
	return nil
}
