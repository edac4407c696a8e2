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

// Lease is one grant of a lock. It is safe for concurrent use. It is never
// used again: locking again gives a new one.
type Lease struct {
	h     *hold
	token fence.Token
	base  context.Context // what Context derives from,
	bound bool            // and ends with

	// Guarded by the keeper's mutex, like everything about the hold.
	done   chan struct{} // made when somebody asks for it
	err    error         // nil while held, then why not; sticky
	ctx    context.Context
	cancel context.CancelCauseFunc
	until  clock.Instant // end of validity when it was left; 0 before
	held   time.Duration // for how long, if it was the last lease of its hold

	releasing sync.Mutex // serialises Release, and guards what follows
	left      bool       // no longer among the hold's leases
	lost      error      // why it was lost before it was released
	released  bool       // outcome is final
	outcome   error
}

// hold is what the leases that entered one grant share.
type hold struct {
	c     *Client
	req   store.Request
	token fence.Token                 // of the present holder
	least clock.Instant               // held until here at least, where MinHold asks for it
	delay func(try int) time.Duration // pauses between releases of unknown outcome

	renewed atomic.Bool // or is being renewed

	// Guarded by the keeper's mutex.
	fsm     leasefsm.Lease
	leases  []*Lease
	first   Lease     // most holds have no other
	only    [1]*Lease // room for it
	lastErr error     // of the last renewal
	at      int       // index in the keeper's heap, -1 when not there

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

// Name of the lock.
func (l *Lease) Name() string { return l.h.req.Name }

// Token is the fencing token: larger for every later grant of this lock. Give
// it to the resource that the lock protects, which refuses smaller ones.
func (l *Lease) Token() fence.Token { return l.token }

// Owner is the owner value of this grant, as the store has it.
func (l *Lease) Owner() string { return l.h.req.Owner }

// Deadline is the end of validity as it is known now: each renewal moves it
// forward, nothing moves it back. It is worked out for the moment of the call;
// compare it with time.Now at once, or better watch Done.
func (l *Lease) Deadline() time.Time {
	k := &l.h.c.keep
	now := time.Now() // first: a pause between the two readings may only shorten it
	k.mu.Lock()
	until := l.until
	if until == 0 {
		until = l.h.fsm.Until()
	}
	left := until.Sub(k.now())
	k.mu.Unlock()
	return now.Add(left)
}

// Done is closed when the lease is over: lost or released.
func (l *Lease) Done() <-chan struct{} {
	k := &l.h.c.keep
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.err != nil {
			close(l.done)
		}
	}
	return l.done
}

// Err is nil while the lease can be trusted. Afterwards it is a *LostError or
// ErrReleased, and stays so. It reads the clock: it says lost as soon as the
// time has come, even if the process was stopped and no timer has fired yet.
func (l *Lease) Err() error {
	k := &l.h.c.keep
	k.mu.Lock()
	defer k.unlock()
	if errLooks {
		k.step(l.h, leasefsm.Tick, 0, k.now())
	}
	return l.err
}

// Context ends when the lease does: context.Cause is then Err's error. Its
// values are those of the context the lock was acquired with; under Do it also
// ends when that context does. It carries the lease: see Acquire on re-entry.
func (l *Lease) Context() context.Context {
	k := &l.h.c.keep
	k.mu.Lock()
	defer k.mu.Unlock()
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

// Extend renews the lease now, for its TTL, besides any renewal that goes on
// by itself. It blocks for the store's answer. The error matches ErrLost or
// ErrReleased when the lease is over; any other means that it is unknown
// whether it was extended: it is still held until the Deadline known before.
func (l *Lease) Extend(ctx context.Context) error {
	if err := l.Err(); err != nil {
		return err
	}
	return l.h.c.keep.renewNow(ctx, l)
}

// Release gives the lock back, after waiting out LockOptions.MinHold, or passes
// it on: see Options.Cohort. Where it is not passed on, it always
// tries, on a context of its own that takes ctx's values but not its end, and
// for a bounded time; ctx bounds the wait for MinHold only. If ctx ends during
// that wait, nothing renews the lock any more, and it ends by itself when MinHold
// is over, or after the longest TTL of the store if that is sooner.
//
// The error matches ErrLost when the lease had been lost before, and otherwise
// says that it is unknown whether the lock is free yet; it will be when its
// TTL is over. Calling Release again returns the same, or tries again where
// the outcome was unknown.
func (l *Lease) Release(ctx context.Context) error {
	over, err := l.release(ctx)
	if over && l.h.c.observe != nil {
		l.h.c.observe(l.base, l.ended(Released, l.held, err))
	}
	return err
}

// release is Release, and says whether the hold has ended by it for the first
// time.
func (l *Lease) release(ctx context.Context) (over bool, err error) {
	l.releasing.Lock()
	defer l.releasing.Unlock()
	if l.released {
		return false, l.outcome
	}
	if !l.left {
		least := l.h.waitLeast(ctx, l)
		var t turn
		t, l.lost = l.h.c.keep.leave(l, least != nil)
		l.left, over = true, t != stays
		if t == askAround && l.h.askAround(ctx) {
			t = passItOn
		}
		if t == stays || t == passItOn || least != nil {
			l.released, l.outcome = true, errors.Join(l.lost, least)
			return over, l.outcome
		}
	}
	return over, l.giveBack(ctx)
}

// giveBack gives the lock back, and settles what Release returns. l.releasing is
// held.
func (l *Lease) giveBack(ctx context.Context) error {
	err := l.h.giveBack(ctx)
	switch {
	case l.lost != nil: // before: say so, whatever the store still had
		l.released, l.outcome = true, l.lost
		if err != nil && !errors.Is(err, store.ErrNotHeld) {
			l.outcome = errors.Join(l.lost, err)
		}
	case errors.Is(err, store.ErrNotHeld):
		l.released, l.outcome = true, &LostError{Name: l.h.req.Name, Reason: "the store had already given it up when it was released"}
	case err != nil:
		return err // unknown: the next call tries again
	default:
		l.released = true
	}
	return l.outcome
}

// giveBack releases in the store, on a context of its own, and tries again
// while the outcome is unknown.
func (h *hold) giveBack(ctx context.Context) error {
	// After a TTL the store has dropped the lease by itself, and nobody wants
	// to wait longer than some seconds to be told so.
	bound := min(max(h.req.TTL, time.Second), 5*time.Second)
	if releaseDetached {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	sent := false // an earlier try of ours may have done it
	for try := 1; ; try++ {
		r := h.req
		r.Renewed = h.renewed.Load()
		var err error
		if try == 1 {
			err = h.release(ctx, r)
			h.c.keep.letGo(h)
		} else {
			err = h.c.store.Release(ctx, r)
		}
		switch {
		case err == nil, sent && errors.Is(err, store.ErrNotHeld):
			return nil
		case errors.Is(err, store.ErrNotHeld), errors.Is(err, store.ErrClosed), errors.Is(err, ErrInvalid):
			return err
		}
		sent = true
		if pause(ctx, min(max(h.delay(try), time.Millisecond), bound/10)); ctx.Err() != nil {
			h.c.log.Warn("release: outcome unknown, the lock ends by its TTL", "lock", h.req.Name, "err", err)
			return err
		}
	}
}
