package leasehold

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/store"
)

// Lease is one grant of a lock. It is safe for concurrent use. A lease that is over
// stays so: locking again gives a new one.
type Lease struct {
	share
	reentered bool

	releasing sync.Mutex // serialises Release, and guards what follows
	resting   int        // calls that wait for MinHold
	detached  bool       // no longer among the hold's leases
	released  bool       // outcome is final
	outcome   error
	lost      error // why it was lost before it was released
}

// newLease returns the first lease of a new hold, which is not started yet. Most holds
// have no other, so both are allocated together.
func newLease(c *holds, grant store.Grant, fsm leasefsm.Lease) *Lease {
	x := &struct {
		h hold
		l Lease
	}{}
	x.h.init(c, grant, fsm)
	x.l.h = &x.h
	return &x.l
}

// leaseKey finds in a context the lease it carries, for re-entry.
type leaseKey struct {
	c    *core
	name string
}

// Name returns the name of the lock.
func (l *Lease) Name() string { return l.h.req.Name }

// Token returns the fencing token, which is larger for every later grant of this
// lock. Pass it to the resource that the lock protects, so that the resource can
// refuse smaller ones.
func (l *Lease) Token() fence.Token { return l.token }

// Owner returns the owner value of this grant, as the store has it.
func (l *Lease) Owner() string { return l.h.req.Owner }

// Slot returns the number of this holder among those that hold the lock together: from
// 0 to one less than the permits of a semaphore. The lease keeps it, and no other
// holder has the same number meanwhile. It is 0 for a mutex.
func (l *Lease) Slot() int { return int(l.h.slot) }

// Deadline returns the end of validity as it is known now. Each renewal moves it
// forward, and nothing moves it back. It is computed for the moment of the call, so
// compare it with time.Now at once. Watch Done instead where you can.
func (l *Lease) Deadline() time.Time {
	wall := time.Now() // first: a pause between the two readings may only shorten it
	now := l.h.c.lock()
	until := l.until
	if until == 0 {
		until = l.h.fsm.Until()
	}
	l.h.c.mu.Unlock()
	return wall.Add(until.Sub(now))
}

// Done returns a channel that is closed when the lease is over: lost or released.
func (l *Lease) Done() <-chan struct{} {
	l.h.c.mu.Lock()
	defer l.h.c.mu.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.err != nil {
			close(l.done)
		}
	}
	return l.done
}

// Err returns nil while the lease can be trusted, and afterwards always the same
// *LostError or ErrReleased. It reads the clock and does not block: it reports a
// loss as soon as the time has come, even if the process was stopped and no timer
// has fired yet.
func (l *Lease) Err() error {
	now := l.h.c.lock()
	defer l.h.c.mu.Unlock()
	if errLooks {
		l.h.stepLocked(leasefsm.Tick, 0, now)
	}
	return l.err
}

// Context returns a context that ends when the lease does; context.Cause is then
// the error of Err. Its values are those of the context that the lock was acquired
// with. Under Do it also ends when that context does. It carries the lease: see
// Lock.Acquire on re-entry. Each call returns the same context.
func (l *Lease) Context() context.Context {
	l.h.c.mu.Lock()
	defer l.h.c.mu.Unlock()
	if l.ctx == nil {
		base := l.base
		if !l.bound {
			base = context.WithoutCancel(base)
		}
		base = context.WithValue(base, leaseKey{&l.h.c.core, l.h.req.Name}, l)
		l.ctx, l.cancel = context.WithCancelCause(base)
		if l.err != nil {
			l.cancel(l.err)
		}
	}
	return l.ctx
}

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
		return gaveUp(ctx, nil)
	}
	err := l.h.c.renewNow(ctx, l.h)
	if over := l.Err(); over != nil {
		return over
	}
	return err
}
