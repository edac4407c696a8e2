package leasehold

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/waits"
	"github.com/leasehold-dev/leasehold/store"
)

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
	return &Lock{c: rw.c, name: rw.name, take: claim{kind: store.ReadWrite, weight: 1}}
}

// Write returns the lock that a writer acquires.
//
// A reader cannot become a writer: Acquire fails with ErrInvalid if its context
// carries a reader's lease. If two readers waited to become the writer, each would
// wait for the other to leave.
func (rw *RW) Write() *Lock {
	return &Lock{c: rw.c, name: rw.name, take: claim{kind: store.ReadWrite, weight: store.ReadWriteLimit}}
}

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
	return &Lock{c: c, name: name, take: claim{kind: store.Semaphore(limit), anew: true}}
}

// claim is what a lease takes of a lock: all of a mutex, some permits of a
// semaphore, one of many places for readers, or all of them for a writer. The
// zero claim is that of a mutex.
type claim struct {
	kind   store.Kind
	weight int64 // of the kind's limit; 0 means 1
	anew   bool  // a lease that the context carries is not re-entered
}

// weighing returns c with the weight that the options ask for, or why the lock called name has no such
// leases.
func (c claim) weighing(name string, weight int) (claim, error) {
	switch {
	case c.kind.Limit < 0:
		return c, invalid("lock %q: a semaphore needs at least one permit", name)
	case weight < 0:
		return c, invalid("Weight is %d: it cannot be negative", weight)
	case weight > 0 && (c.kind.Limit == 0 || c.kind.Shared):
		return c, invalid("lock %q has Weight %d: only the leases of a semaphore have a weight, and this is a %v", name, weight, c.kind)
	case weight > 0:
		c.weight = int64(weight)
	}
	return c, nil
}

// reenters returns nil if a holder with the lease r has what t asks for.
func reenters(t *waits.Terms, r store.Lease) error {
	has, wants := max(r.Weight, 1), max(t.Weight, 1)
	switch {
	case r.Kind.Normal() != t.Kind.Normal():
		return &store.KindError{Name: r.Name, Asked: t.Kind, InUse: r.Kind, Holder: store.DecodeHolder(r.Owner, r.Meta)}
	case wants > has:
		return invalid("lock %q: the context carries a reader's lease, which cannot become a writer's: two readers that both wanted that would wait for each other for ever. Release it, acquire the lock as the writer, and read again", r.Name)
	case t.Require > r.Require:
		return fmt.Errorf("%w: lock %q requires %v, and the lease in the context was acquired with %v: require %[3]v where it is acquired", ErrUnsupported, r.Name, t.Require, r.Require)
	}
	return nil
}
