package leasehold

import "github.com/leasehold-dev/leasehold/store"

// RW is a read-write lock: many readers hold it at once, or one writer alone. It is
// immutable, cheap to make and safe for concurrent use.
//
// Waiters form one FIFO queue. A waiting writer stops readers that come later, and
// readers that wait get the lock together, in the order in which they came.
//
// A writer can become a reader (see Lease.Downgrade), but a reader cannot become a writer.
// Every reader has a lease of its own, so a reader that dies frees only itself.
// Readers that hold the lock together share one fencing token. It is larger than
// that of the writer before them, so a resource that checks tokens refuses a writer
// that was paused, and admits all readers. Over several Redis servers readers may have
// different tokens, each of them larger than that of the writer before: there, check the
// tokens of writers only.
type RW struct {
	c    *Client
	name string
}

// RW returns the read-write lock of that name. It sends nothing. A store that keeps
// no such locks, or an invalid name, is reported when the lock is acquired: the
// error matches ErrUnsupported or ErrInvalid, and nothing is sent. While the name is
// in use for another kind of lock, acquiring it fails at once with an error that
// matches ErrKindMismatch and names both kinds.
func (c *Client) RW(name string) *RW { return &RW{c, name} }

// Name returns the name of the lock.
func (rw *RW) Name() string { return rw.name }

// Read returns the lock that readers acquire.
//
// A context that carries a lease of the writer may be used to read: that re-enters
// the writer's lease.
func (rw *RW) Read() *Lock {
	return newLock(&rw.c.queues, rw.name, claim{kind: store.ReadWrite, weight: 1})
}

// Write returns the lock that a writer acquires.
//
// A reader cannot become a writer: Acquire fails with ErrInvalid if its context
// carries a reader's lease. If two readers waited to become the writer, each would
// wait for the other to leave.
func (rw *RW) Write() *Lock {
	return newLock(&rw.c.queues, rw.name, claim{kind: store.ReadWrite, weight: store.ReadWriteLimit})
}
