package holds

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/store"
)

// Lease is one holder's part of a grant. Its methods are those of leasehold.Lease.
type Lease struct {
	h         *hold
	base      context.Context // what Context derives from,
	bound     bool            // and ends with
	reentered bool

	// Guarded by the client's mutex.
	done   chan struct{} // made when somebody asks for it
	err    error         // nil while held, then why not; sticky
	ctx    context.Context
	cancel context.CancelCauseFunc
	until  clock.Instant // end of validity when it was left; 0 before
	held   time.Duration // for how long, if it was the last lease of its hold

	releasing sync.Mutex // serialises Release, and guards what follows
	resting   int        // calls that wait for MinHold
	detached  bool       // no longer among the hold's leases
	released  bool       // outcome is final
	outcome   error
	lost      error // why it was lost before it was released
}

// Request is the lease as it was granted. Its owner, kind and weight stay the same.
func (l *Lease) Request() store.Lease { return l.h.req }

func (l *Lease) Name() string       { return l.h.req.Name }
func (l *Lease) Owner() string      { return l.h.req.Owner }
func (l *Lease) Token() fence.Token { return l.h.token }
func (l *Lease) Slot() int64        { return l.h.slot }

// leaseKey finds in a context the lease it carries, for re-entry.
type leaseKey struct {
	c    *Holds
	name string
}

// CarriedAndHeld returns the innermost lease of the lock of that name that ctx carries and that
// is not over, or nil.
func (c *Holds) CarriedAndHeld(ctx context.Context, name string) *Lease {
	for {
		l, _ := ctx.Value(leaseKey{c, name}).(*Lease)
		if l == nil || l.Err() == nil {
			return l
		}
		ctx = l.base
	}
}

// CarriedBy returns a context like ctx that carries l.
func (l *Lease) CarriedBy(ctx context.Context) context.Context {
	return context.WithValue(ctx, leaseKey{l.h.c, l.h.req.Name}, l)
}

// Reenter returns another lease of the grant of l, with a context as in Start, or nil if l is over.
func (l *Lease) Reenter(base context.Context, bound bool) *Lease {
	h := l.h
	now := h.c.lock()
	defer h.c.mu.Unlock()
	if h.stepLocked(leasefsm.Tick, 0, now); l.err != nil {
		return nil
	}
	next := &Lease{h: h, base: base, bound: bound, reentered: true}
	h.leases = append(h.leases, next)
	return next
}

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

func (l *Lease) Err() error {
	now := l.h.c.lock()
	defer l.h.c.mu.Unlock()
	if errLooks {
		l.h.stepLocked(leasefsm.Tick, 0, now)
	}
	return l.err
}

func (l *Lease) Context() context.Context {
	l.h.c.mu.Lock()
	defer l.h.c.mu.Unlock()
	if l.ctx == nil {
		base := l.base
		if !l.bound {
			base = context.WithoutCancel(base)
		}
		l.ctx, l.cancel = context.WithCancelCause(l.CarriedBy(base))
		if l.err != nil {
			l.cancel(l.err)
		}
	}
	return l.ctx
}

// Extend renews l now. The context is not checked before.
func (l *Lease) Extend(ctx context.Context) error {
	err := l.h.c.renewNow(ctx, l.h)
	if over := l.Err(); over != nil {
		return over
	}
	return err
}

// Bound bounds the hold of l from now on, as life says. A lease that was re-entered keeps its
// bounds.
func (l *Lease) Bound(life leasefsm.Config) {
	if l.reentered {
		return
	}
	h := l.h
	now := h.c.lock()
	defer h.c.mu.Unlock()
	h.fsm.Lease = h.fsm.Bounded(life.MaxHold, life.Renew, now)
	h.stepLocked(leasefsm.Tick, 0, now)
}

// endLocked ends l with err, unless it has ended already.
func (l *Lease) endLocked(err error) {
	if l.err != nil {
		return
	}
	l.err = err
	if l.done != nil {
		close(l.done)
	}
	if l.cancel != nil {
		l.cancel(err)
	}
}

// isOver reports whether l is lost or released, as far as is known.
func (l *Lease) isOver() bool {
	l.h.c.mu.Lock()
	defer l.h.c.mu.Unlock()
	return l.err != nil
}

// leaveLocked takes l out of its hold, and reports whether it was the last lease of it.
func (l *Lease) leaveLocked(now clock.Instant) (last bool) {
	h := l.h
	l.endLocked(ErrReleased)
	l.until = h.fsm.Until()
	h.leases = slices.DeleteFunc(h.leases, func(o *Lease) bool { return o == l })
	if last = len(h.leases) == 0; last {
		l.held = now.Sub(h.fsm.Since())
		h.stepLocked(leasefsm.Release, 0, now)
	}
	return last
}
