package leasehold

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/store"
)

// Lease is one grant of a lock. It is safe for concurrent use. A lease that is over
// stays so: locking again gives a new one.
type Lease struct {
	h     *hold
	token fence.Token
	base  context.Context // what Context derives from,
	bound bool            // and ends with

	// Guarded by the client's mutex, like everything about the hold.
	done   chan struct{} // made when somebody asks for it
	err    error         // nil while held, then why not; sticky
	ctx    context.Context
	cancel context.CancelCauseFunc
	until  clock.Instant // end of validity when it was left; 0 before
	held   time.Duration // for how long, if it was the last lease of its hold

	releasing sync.Mutex // serialises Release, and guards what follows
	detached  bool       // no longer among the hold's leases
	released  bool       // outcome is final
	outcome   error
	lost      error // why it was lost before it was released
}

// leaseKey finds in a context the lease it carries, for re-entry.
type leaseKey struct {
	c    *Client
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
		base = context.WithValue(base, leaseKey{l.h.c, l.h.req.Name}, l)
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
// have been extended: it is still held until the Deadline known before.
func (l *Lease) Extend(ctx context.Context) error {
	mustHave(ctx)
	if err := l.Err(); err != nil {
		return err
	}
	return l.h.c.renewNow(ctx, l)
}

// Release ends the lease. The last lease of a grant frees the lock or passes it on
// to another goroutine of this Client: see Options.Cohort.
//
// Release waits for the rest of LockOptions.MinHold, and then for the store's
// answer: for five seconds at most, and up to a third of the TTL more if other
// goroutines of this Client wait. The request is sent even if ctx has ended. ctx
// bounds only the wait for MinHold: if it ends there, the lock ends by itself when
// MinHold is over, or after the longest TTL of the store if that is sooner, and the
// error matches ctx.Err().
//
// The error matches ErrLost if the lease had been lost. Another error means that
// the lock may not be free yet; it is when its TTL is over. Calling Release again
// returns the same result, or tries again if the outcome was unknown.
func (l *Lease) Release(ctx context.Context) error {
	mustHave(ctx)
	over, known, err := l.release(ctx)
	if !known {
		l.h.logUnknown(err)
	}
	if over {
		l.observeRelease(err)
	}
	return err
}

// release is Release, and says whether the hold has ended by it for the first
// time, and whether the outcome is known. Nothing of the user's is called that
// could release l again, since that waits for this.
func (l *Lease) release(ctx context.Context) (over, known bool, err error) {
	l.releasing.Lock()
	defer l.releasing.Unlock()
	if l.released {
		return false, true, l.outcome
	}
	returned := false
	defer func() {
		if !returned && l.isOver() { // the clock failed: it is no longer renewed
			l.h.c.drop(ctx, store.ReleaseRequest{Lease: l.h.req})
		}
	}()
	over, err = l.releaseOnce(ctx)
	returned = true
	return over, l.released, err
}

// isOver says whether l is lost or released, as far as is known.
func (l *Lease) isOver() bool {
	l.h.c.mu.Lock()
	defer l.h.c.mu.Unlock()
	return l.err != nil
}

// releaseOnce is one call of release. l.releasing is held.
func (l *Lease) releaseOnce(ctx context.Context) (over bool, err error) {
	if !l.detached {
		t, impatient := l.leave(ctx)
		l.detached, over = true, t.verdict != stays
		if t.verdict == askAround && l.h.askAround(ctx, t) {
			t.verdict = passItOn
		}
		switch t.verdict {
		case stays, passItOn:
			l.released, l.outcome = true, l.lost
			return over, l.outcome
		case leaveIt:
			l.released, l.outcome = true, errors.Join(l.h.stay(ctx), impatient)
			return over, l.outcome
		}
	}
	return over, l.releaseHold(ctx)
}

// releaseHold releases the lock, and settles what Release returns. l.releasing is
// held.
func (l *Lease) releaseHold(ctx context.Context) error {
	err := l.h.release(ctx, l.lost != nil)
	switch {
	case l.lost != nil: // before: say so, whatever the store still had
		l.released, l.outcome = true, l.lost
		if err != nil && !errors.Is(err, store.ErrNotHeld) {
			l.outcome = errors.Join(l.lost, err)
		}
	case errors.Is(err, store.ErrNotHeld):
		l.released, l.outcome = true, &LostError{Name: l.h.req.Name, Cause: LostDenied, Reason: "the store no longer had it when it was released"}
	case err != nil:
		return err // unknown: the next call tries again
	default:
		l.released = true
	}
	return l.outcome
}
