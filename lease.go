package leasehold

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/holds"
	"github.com/leasehold-dev/leasehold/internal/waits"
)

// Lease is one grant of a lock. It is safe for concurrent use. A lease that is over
// stays so: locking again gives a new one.
type Lease struct {
	c    *Client
	held *holds.Lease
}

// Name returns the name of the lock.
func (l *Lease) Name() string { return l.held.Name() }

// Token returns the fencing token, which is larger for every later grant of this
// lock. Pass it to the resource that the lock protects, so that the resource can
// refuse smaller ones.
func (l *Lease) Token() fence.Token { return l.held.Token() }

// Owner returns the owner value of this grant, as the store has it.
func (l *Lease) Owner() string { return l.held.Owner() }

// Slot returns the number of this holder among those that hold the lock together: from
// 0 to one less than the permits of a semaphore. The lease keeps it, and no other
// holder has the same number meanwhile. It is 0 for a mutex.
func (l *Lease) Slot() int { return int(l.held.Slot()) }

// Deadline returns the end of validity as it is known now. Each renewal moves it
// forward, and nothing moves it back. It is computed for the moment of the call, so
// compare it with time.Now at once. Watch Done instead where you can.
func (l *Lease) Deadline() time.Time { return l.held.Deadline() }

// Done returns a channel that is closed when the lease is over: lost or released.
func (l *Lease) Done() <-chan struct{} { return l.held.Done() }

// Err returns nil while the lease can be trusted, and afterwards always the same
// *LostError or ErrReleased. It reads the clock and does not block: it reports a
// loss as soon as the time has come, even if the process was stopped and no timer
// has fired yet.
func (l *Lease) Err() error { return l.held.Err() }

// Context returns a context that ends when the lease does; context.Cause is then
// the error of Err. Its values are those of the context that the lock was acquired
// with. Under Do it also ends when that context does. It carries the lease: see
// Lock.Acquire on re-entry. Each call returns the same context.
func (l *Lease) Context() context.Context { return l.held.Context() }

// Extend renews the lease now, for its TTL, in addition to the renewals that go on
// by themselves. It blocks for the store's answer. The error matches ErrLost or
// ErrReleased if the lease is over. Any other error means that it may or may not
// have been extended: it is still held until the Deadline known before. If ctx has ended,
// nothing is sent.
func (l *Lease) Extend(ctx context.Context) error {
	mustHave(ctx)
	if err := l.Err(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return waits.GaveUp(ctx, nil)
	}
	return l.held.Extend(ctx)
}

// Release ends the lease. The last lease of a grant frees the lock.
//
// Release waits for the rest of LockOptions.MinHold, and then for the store's
// answer: for five seconds at most. The request is sent even if ctx has ended. ctx
// bounds only the wait for MinHold: if it ends there, the error matches ctx.Err(), and
// the lock ends by itself when both MinHold and the TTL of the last renewal are over, or
// after the longest TTL of the store if that is sooner. If another call of Release waits
// for MinHold then, the lock is left to that one.
//
// The error matches ErrLost if the lease had been lost. Another error means that
// the lock may not be free yet; it is when its TTL is over. Calling Release again
// returns the same result, or tries again if the outcome was unknown.
func (l *Lease) Release(ctx context.Context) error {
	mustHave(ctx)
	return l.held.Release(ctx)
}

// WaiveMinHold makes Release free the lock at once, whatever LockOptions.MinHold
// says, also a Release that waits already. It is for work that failed before it began,
// which other processes may try. It does not block. Once l is released it does nothing:
// another lease of the same grant may be held.
func (l *Lease) WaiveMinHold() { l.held.WaiveMinHold() }

// Downgrade makes the writer of a read-write lock a reader, without a moment in which
// another can write: what was written is what is read. It blocks for the store's answer.
// Stop writing before you call it.
//
// It returns the reader's lease, which has a larger token, a context of its own, and the
// options of l; MaxHold counts anew. l ends with ErrReleased, and releasing it does
// nothing. Readers that wait get the lock as well, up to the first writer in the queue.
//
// The error matches ErrLost or ErrReleased if l is over, ErrInvalid if it is no writer's
// or if other leases that re-entered it are held, and ErrUnsupported if the store cannot
// do it. After any other error others may read already: call Downgrade again, or release
// l.
func (l *Lease) Downgrade(ctx context.Context) (*Lease, error) {
	mustHave(ctx)
	var began clock.Instant
	if l.c.observe != nil {
		began = l.c.holds.Clock.Now()
	}
	held, over, err := l.held.Downgrade(ctx)
	if err != nil {
		return nil, err
	}
	next := &Lease{l.c, held}
	if l.c.observe != nil {
		l.observeDowngrade(ctx, next, over, began)
	}
	return next, nil
}

// observeDowngrade tells the observer that the lease next has taken the place of l, and
// that l was released if its hold is over. If the observer ends the goroutine, the caller
// does not get next, so it is released.
func (l *Lease) observeDowngrade(ctx context.Context, next *Lease, over bool, began clock.Instant) {
	returned := false
	defer func() {
		if !returned {
			next.held.Discard()
		}
	}()
	if over {
		l.held.ObserveRelease(nil)
	}
	l.c.observe(ctx, Event{Kind: Acquired, Name: next.Name(), Call: calls.Add(1), Owner: next.Owner(), Token: next.Token(), Waited: l.c.holds.Clock.Now().Sub(began)})
	next.held.GrantTold()
	returned = true
}
