package leasehold

import "context"

// Lock is a recipe for leases: a name, a kind and options. It is immutable, cheap
// to make and safe for concurrent use.
type Lock struct {
	c *queues
	r recipe
}

func newLock(c *queues, name string, take claim) *Lock {
	return &Lock{c, recipe{c: &c.core, name: name, take: take}}
}

// Name returns the name of the lock.
func (l *Lock) Name() string { return l.r.name }

// With returns a copy of l in which the fields set in o replace those of l. A zero
// field of o changes nothing.
func (l *Lock) With(o LockOptions) *Lock {
	return &Lock{l.c, *l.r.with(o)}
}

// Acquire blocks until it has the lock, and returns a lease of it, which outlives
// ctx. The caller must release it.
//
// It waits until ctx ends or LockOptions.Tries attempts have failed. If ctx ends
// first, the error matches ctx.Err(), and ErrBusy if the lock was held. Nothing
// stays in the store then, though the clean-up may go on in the background. If what
// is known of the holder is old by then, the store is asked for it once more, for a
// second at most.
//
// While nodes cannot be reached, Acquire goes on trying for one TTL; while they are
// in quarantine, for as long as that lasts. It returns at once with an error that
// matches ErrInvalid, ErrUnsupported, ErrKindMismatch, ErrQuorum (nodes refuse) or
// the engine's own, since waiting cannot help.
//
// Waiters form a FIFO queue. Goroutines of one Client that want the same (name,
// TTL and other durations, Require, Barge and Purpose) share one place in the
// store's queue. The lock is then granted to the goroutine that has waited longest,
// with an owner and a token of its own. Goroutines that want a permit of a semaphore, or
// to read or write, have a place each. A store that keeps no queue is asked again after
// each RetryDelay.
//
// A context made by Do or Lease.Context carries its lease. Acquiring the same mutex or
// read-write lock of the same Client with it re-enters that lease at once, without asking
// the store. The lock stays held until every lease so obtained is released. Re-entry
// fails with ErrUnsupported if LockOptions.Require is more than the lease was
// acquired with; the other options of the first lease stay in force. A lease that is over
// is not re-entered: its context is then as one that carries none. Nor is a lease of a
// semaphore, whose permits are counted, and neither Client.Once nor Election.Run enters
// any. With another Owner than that of the lease, the lock is found to be held.
func (l *Lock) Acquire(ctx context.Context) (*Lease, error) {
	return l.c.wait(ctx, &l.r, l.r.o.Tries, false)
}

// Try makes one attempt. It blocks for the store's answer, but does not wait for
// the lock to become free: the error then matches ErrBusy. Otherwise it is like
// Acquire.
func (l *Lock) Try(ctx context.Context) (*Lease, error) {
	return l.c.wait(ctx, &l.r, 1, false)
}
