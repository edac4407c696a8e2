package leasehold

import "github.com/leasehold-dev/leasehold/store"

// Semaphore returns the lock of that name with n permits. Each lease takes one of
// them, or as many as LockOptions.Weight says, and leases whose weights add up to at
// most n are held at once. Semaphore sends nothing. A semaphore with one permit is a
// mutex.
//
// Waiters form a FIFO queue, so that those that want many permits are not starved by
// those that want few. A holder that dies gives its permits back when its TTL is over.
// Lease.Slot numbers the holders.
//
// Every lease has a fencing token of its own. Holders work at the same time, so
// tokens say nothing about who is the newest among them, only which of two leases of
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
	return &Lock{c: c, name: name, take: share{kind: store.Semaphore(limit)}}
}
