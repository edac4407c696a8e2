package holds

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/renewer"
	"github.com/leasehold-dev/leasehold/store"
)

// hold is one grant. The leases that entered it share it.
type hold struct {
	Terms
	c     *Holds
	req   store.Lease // as it was granted
	token fence.Token
	slot  int64         // as it was granted
	least clock.Instant // held until here at least, where MinHold asks for it

	renewed atomic.Bool // or is being renewed

	// Guarded by the client's mutex.
	telling int      // events that a goroutine of the package has not told the observer yet
	untold  bool     // the goroutine that was granted the lock has not told the observer that yet
	later   []func() // tell the observer what has happened meanwhile
	fsm     renewer.Lease[*hold]
	leases  []*Lease
	only    [1]*Lease     // room for it: most holds have no other
	lastErr error         // of the last renewal
	broken  *store.Broken // why that was denied, as far as is known
	waived  chan struct{} // closed when MinHold is waived; nil unless a release waits for that
}

// Terms say how a lease is held.
type Terms struct {
	// MinHold is the least time that the lock stays taken. It counts from when the grant has
	// arrived, and not from when the request left, as validity does: that may be long before
	// anybody held the lock.
	MinHold time.Duration
	// Fixed reports that its owner value is the caller's, and may have other leases.
	Fixed bool
	// RetryDelay returns the pause after the try-th release of unknown outcome.
	RetryDelay func(try int) time.Duration
	// By releases the lease in the store. Nil: the store itself.
	By Releaser
}

// Releaser releases leases: the store, or the queue that has waited for the lease.
type Releaser interface {
	Release(ctx context.Context, r store.ReleaseRequest) error
}

// Take returns the first lease of what the store has granted to a request that left at start,
// and the time. The lease is held from Start on. A grant whose validity is over is released,
// and the error is then that of its loss.
func (c *Holds) Take(ctx context.Context, grant store.Grant, life leasefsm.Config, start clock.Instant) (*Lease, clock.Instant, error) {
	now := c.Clock.Now()
	start = min(start, now)
	l := c.newLease(grant, leasefsm.New(life).Step(leasefsm.Granted, start, now))
	if !l.h.fsm.Live() {
		took := now.Sub(start)
		err := l.h.release(ctx, true)
		return nil, now, c.LostError(Loss{Name: l.h.req.Name, Late: true, Reason: "the grant took " + store.Round(took).String() + " to arrive, and its validity was over", Err: err})
	}
	return l, now, nil
}

// newLease returns the first lease of a new hold. Most holds have no other, so both are allocated
// together.
func (c *Holds) newLease(grant store.Grant, fsm leasefsm.Lease) *Lease {
	x := &struct {
		h hold
		l Lease
	}{}
	h, l := &x.h, &x.l
	h.c, h.req, h.token, h.slot = c, grant.Lease, grant.Token, grant.Slot
	h.RetryDelay, h.By = c.RetryDelay, c.Store
	h.fsm = renewer.NewLease(h, fsm)
	l.h = h
	return l
}

// Start renews l from now on. Its context is derived from base, and with bound it ends when base
// does.
func (l *Lease) Start(now clock.Instant, t Terms, base context.Context, bound bool) {
	h := l.h
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	if t.By == nil {
		t.By = h.By
	}
	h.Terms = t
	if h.MinHold > 0 {
		h.least = now.Add(h.MinHold)
	}
	l.base, l.bound = base, bound
	h.startLocked(l, now)
	h.c.followEarlyLocked(h, now)
}

// startLocked renews h from now on, whose first lease is l.
func (h *hold) startLocked(l *Lease, now clock.Instant) {
	h.untold = h.c.Observe != nil
	h.leases = append(h.only[:0], l)
	h.c.renewer.Add(&h.fsm, now)
}

// stepLocked applies an event to h, keeps its place among the deadlines, and
// tells its holders when it is lost.
func (h *hold) stepLocked(e leasefsm.Event, start, now clock.Instant) {
	if e == leasefsm.RenewalSent {
		h.renewed.Store(true)
	}
	before := h.fsm.State()
	h.c.renewer.Step(&h.fsm, e, start, now)
	after := h.fsm.State()
	if after == before {
		return
	}
	switch after {
	case leasefsm.Lost:
		loss := Loss{Name: h.req.Name, Cause: h.fsm.Cause(), Reason: h.fsm.Cause().String(), Err: h.lastErr}
		if h.broken != nil && loss.Cause == leasefsm.Denied {
			loss.Reason, loss.Broken = h.broken.String(), h.broken
		}
		err := h.c.LostError(loss)
		h.c.logLater(slog.LevelError, "lease lost", "lock", h.req.Name, "owner", h.req.Owner, "token", h.token, "err", err)
		for _, l := range h.leases {
			if lossTold {
				l.endLocked(err)
			}
		}
		if h.c.Observe != nil && len(h.leases) > 0 {
			h.leases[0].observeLaterLocked(Lost, now, err)
		}
	case leasefsm.Jeopardy:
		h.c.logLater(slog.LevelWarn, "renewal failed, validity remains", "lock", h.req.Name, "left", h.fsm.Until().Sub(now), "err", h.lastErr)
	}
}

// observeLaterLocked has a goroutine of the package tell the observer what became of l
// at now.
func (l *Lease) observeLaterLocked(what Change, now clock.Instant, err error) {
	h := l.h
	held := now.Sub(h.fsm.Since())
	h.telling++
	tell := func() {
		defer func() {
			h.c.mu.Lock()
			h.telling--
			h.c.mu.Unlock()
		}()
		h.c.Observe(l.base, l, what, held, err)
	}
	if h.untold {
		h.later = append(h.later, tell)
	} else {
		h.c.notify.Add(tell)
	}
}

// GrantTold notes that the observer knows of the grant of l. The observer now learns what has
// happened to l since.
func (l *Lease) GrantTold() {
	h := l.h
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	for _, tell := range h.later {
		h.c.notify.Add(tell)
	}
	h.untold, h.later = false, nil
}

// endedOnTime reports whether h was lost at a moment that its options had set, so that
// the store still has the lock, and whether nobody else may have it under the same
// owner.
func (h *hold) endedOnTime() bool {
	cause := h.fsm.Cause()
	return !h.Fixed && (cause == leasefsm.HeldMax || cause == leasefsm.Expired && h.fsm.Renew == 0)
}
