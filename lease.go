package leasehold

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
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

	// Guarded by the renewer's mutex, like everything about the hold.
	done   chan struct{} // made when somebody asks for it
	err    error         // nil while held, then why not; sticky
	ctx    context.Context
	cancel context.CancelCauseFunc
	until  clock.Instant // end of validity when it was left; 0 before
	held   time.Duration // for how long, if it was the last lease of its hold

	releasing sync.Mutex // serialises Release, and guards what follows
	detached  bool       // no longer among the hold's leases
	lost      error      // why it was lost before it was released
	released  bool       // outcome is final
	outcome   error
}

// hold is what the leases that entered one grant share.
type hold struct {
	c     *Client
	req   store.Lease                 // as it was granted
	token fence.Token                 // of the present holder
	least clock.Instant               // held until here at least, where MinHold asks for it
	delay func(try int) time.Duration // pauses between releases of unknown outcome

	renewed atomic.Bool // or is being renewed

	// Guarded by the renewer's mutex.
	fsm     leasefsm.Lease
	leases  []*Lease
	first   Lease     // most holds have no other
	only    [1]*Lease // room for it
	lastErr error     // of the last renewal
	at      int       // index in the renewer's heap, -1 when not there
	telling bool      // the observer is being told of the loss

	home *queue // whose place in the store's line it was granted at; nil: at none
	// Where the lease may be passed on, to whom and what for.
	q      *queue
	next   fence.Token   // to be used next,
	spare  int           // of so many
	passes int           // since mark,
	mark   clock.Instant // from when the cohort's bounds count

	holder *Holder // what others are told of it, once somebody was
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

// Deadline returns the end of validity as it is known now. Each renewal moves it
// forward, and nothing moves it back. It is computed for the moment of the call, so
// compare it with time.Now at once. Watch Done instead where you can.
func (l *Lease) Deadline() time.Time {
	rn := &l.h.c.renewer
	wall := time.Now() // first: a pause between the two readings may only shorten it
	now := rn.lock()
	until := l.until
	if until == 0 {
		until = l.h.fsm.Until()
	}
	rn.mu.Unlock()
	return wall.Add(until.Sub(now))
}

// Done returns a channel that is closed when the lease is over: lost or released.
func (l *Lease) Done() <-chan struct{} {
	rn := &l.h.c.renewer
	rn.mu.Lock()
	defer rn.mu.Unlock()
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
	rn := &l.h.c.renewer
	now := rn.lock()
	defer rn.mu.Unlock()
	if errLooks {
		rn.stepLocked(l.h, leasefsm.Tick, 0, now)
	}
	return l.err
}

// Context returns a context that ends when the lease does; context.Cause is then
// the error of Err. Its values are those of the context that the lock was acquired
// with. Under Do it also ends when that context does. It carries the lease: see
// Lock.Acquire on re-entry. Each call returns the same context.
func (l *Lease) Context() context.Context {
	rn := &l.h.c.renewer
	rn.mu.Lock()
	defer rn.mu.Unlock()
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
	return l.h.c.renewer.renewNow(ctx, l)
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
	l.h.c.renewer.mu.Lock()
	defer l.h.c.renewer.mu.Unlock()
	return l.err != nil
}

// releaseOnce is one call of release. l.releasing is held.
func (l *Lease) releaseOnce(ctx context.Context) (over bool, err error) {
	if !l.detached {
		t, impatient := l.leave(ctx)
		l.detached, over = true, t != stays
		if t == askAround && l.h.askAround(ctx) {
			t = passItOn
		}
		switch t {
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

// release releases h in the store, on a context of its own, and tries again
// while the outcome is unknown. With undo it leaves the lease to other attempts of
// the same owner, if they know of it.
func (h *hold) release(ctx context.Context, undo bool) error {
	// After a TTL the store has dropped the lease by itself, and nobody wants
	// to wait longer than some seconds to be told so.
	bound := min(max(h.req.TTL, time.Second), 5*time.Second)
	if releaseDetached {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	r := store.ReleaseRequest{Lease: h.req, Renewed: h.renewed.Load(), Undo: undo}
	err := h.releaseOrRejoin(ctx, r)
	h.c.renewer.detachReleased(h)
	for try := 1; retries(err); try++ {
		if pause(ctx, min(max(h.pauseAfter(ctx, try), time.Millisecond), bound/10)); ctx.Err() != nil {
			return err
		}
		r.Renewed = h.renewed.Load()
		if err = h.c.store.Release(ctx, r); errors.Is(err, store.ErrNotHeld) {
			return nil // an earlier try of ours may have done it
		}
	}
	return err
}

// retries says whether a release that ended with err is to be tried again.
func retries(err error) bool {
	return err != nil && !errors.Is(err, store.ErrNotHeld) && !errors.Is(err, store.ErrClosed) && !errors.Is(err, ErrInvalid)
}

// pauseAfter is the user's RetryDelay. If that does not return, the release is
// tried once more at once.
func (h *hold) pauseAfter(ctx context.Context, try int) time.Duration {
	returned := false
	defer func() {
		if !returned {
			h.c.drop(ctx, store.ReleaseRequest{Lease: h.req})
		}
	}()
	d := h.delay(try)
	returned = true
	return d
}

// logUnknown logs that nobody knows whether h was released.
func (h *hold) logUnknown(err error) {
	h.c.log.Warn("release: outcome unknown, the lock ends by its TTL", "lock", h.req.Name, "err", err)
}
