package leasehold

import (
	"context"

	"github.com/leasehold-dev/leasehold/store"
)

// Semaphore returns the lock of that name with n permits. Each lease takes one of
// them, or as many as LockOptions.Weight says, and leases whose weights add up to at
// most n are held at once. Semaphore sends nothing. A semaphore with one permit is a
// mutex.
//
// Waiters form a FIFO queue, so that those that want many permits are not starved by
// those that want few. A holder that dies gives its permits back when its TTL is over.
// Lease.Slot numbers the holders.
//
// A lease of a semaphore is not re-entered: each Acquire takes permits of its own, also with
// a context that carries a lease of it. A goroutine that waits for more permits while it has
// some may wait for ever, since others may do the same.
//
// Every lease has a fencing token of its own. Holders work at the same time, so
// tokens do not say which of them is the newest, only which of two leases of
// the same slot is: a resource compares tokens for each name and slot.
//
// Acquiring the lock fails at once, and nothing is sent, with an error that matches
// ErrUnsupported if the store keeps no semaphores, and ErrInvalid if n is less than 1
// or the weight more than n. While the lock is in use with another n, or as another
// kind, the error matches ErrKindMismatch and names both.
func (c *Client) Semaphore(name string, n int) *Lock {
	limit := int64(n)
	if n < 1 {
		limit = -1 // since 0 stands for a mutex
	}
	return newLock(&c.queues, name, claim{kind: store.Semaphore(limit), anew: true})
}

// Resize changes the number of permits of a semaphore that is in use, from one number to
// another. It blocks for the store's answer.
//
// Leases stay as they are. If they no longer fit, nobody is granted a permit until they
// do. Goroutines and processes that wait end with ErrKindMismatch, since they asked for
// the earlier number, as do all that ask for it from now on. A semaphore that nobody
// uses has no number of permits: the first that asks for it says how many. Resize then
// does nothing.
//
// Over several Redis servers a semaphore keeps its number: the error matches ErrUnsupported.
// Use a semaphore with another name for another number.
//
// The error matches ErrKindMismatch, and names both numbers, if another number than from
// is in use, ErrInvalid if a number is less than 1, and ErrUnsupported if the store cannot
// do it. After any other error the number may have changed, and calling again is safe.
func (c *Client) Resize(ctx context.Context, name string, from, to int) error {
	mustHave(ctx)
	if from < 1 || to < 1 {
		return invalid("lock %q: a semaphore needs at least one permit", name)
	}
	return c.store.Resize(ctx, name, store.Semaphore(int64(from)), store.Semaphore(int64(to)))
}
