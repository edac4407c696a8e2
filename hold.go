package leasehold

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/renewer"
	"github.com/leasehold-dev/leasehold/store"
)

// hold is what the leases that entered one grant share.
type hold struct {
	c     *Client
	req   store.Lease                 // as it was granted
	token fence.Token                 // of the present holder
	slot  int64                       // as it was granted
	least clock.Instant               // held until here at least, where MinHold asks for it
	delay func(try int) time.Duration // pauses between releases of unknown outcome

	renewed atomic.Bool // or is being renewed

	// Guarded by the client's mutex.
	telling bool // the observer is being told of the loss
	fsm     renewer.Lease[*hold]
	leases  []*Lease
	first   Lease     // most holds have no other
	only    [1]*Lease // room for it
	lastErr error     // of the last renewal

	home *queue // whose place in the store's line it was granted at; nil: at none
	q    *queue // which passes the lease on; nil: none

	holder *Holder // what others are told of it, once somebody was
}

func (c *Client) newHold(req store.Lease, grant store.Grant, fsm leasefsm.Lease) *hold {
	h := &hold{c: c, req: req, token: grant.Token, slot: grant.Slot, delay: c.delay}
	h.fsm = renewer.NewLease(h, fsm)
	h.renewed.Store(grant.Repeated)
	return h
}

// startLocked renews h from now on, when its grant has arrived, and returns the first
// lease of it, which l asked for.
func (h *hold) startLocked(now clock.Instant, l *Lock, base context.Context, bound bool) *Lease {
	h.applyOptionsLocked(now, l)
	h.leases = h.only[:0]
	lease := h.addLeaseLocked(&h.first, base, bound)
	h.c.renewer.Add(&h.fsm, now)
	return lease
}

// applyOptionsLocked notes what l wants of a hold whose grant arrived, or which was
// passed on, at now. MinHold does not count from when the request left, as validity
// does: that may be long before anybody held the lock.
func (h *hold) applyOptionsLocked(now clock.Instant, l *Lock) {
	h.delay, h.least = l.delay(), 0
	if l.o.MinHold > 0 {
		h.least = now.Add(l.o.MinHold)
	}
}

// addLeaseLocked makes l one more lease of h.
func (h *hold) addLeaseLocked(l *Lease, base context.Context, bound bool) *Lease {
	l.h, l.base, l.bound, l.token = h, base, bound, h.token
	h.leases = append(h.leases, l)
	return l
}

// reenter makes another lease of the grant that outer has.
func (l *Lease) reenter(base context.Context, bound bool) (*Lease, error) {
	now := l.h.c.lock()
	defer l.h.c.mu.Unlock()
	if l.h.stepLocked(leasefsm.Tick, 0, now); l.err != nil {
		return nil, l.err
	}
	return l.h.addLeaseLocked(new(Lease), base, bound), nil
}

// leaveHold ends l, unless it is the last of its hold and MinHold is not over: rest is
// then how long it has to wait before it calls again. Otherwise leaveHold says what
// becomes of the hold, and why l had been lost, if it had. With impatient it does
// not ask to wait, and leaves the lock to its TTL instead.
func (l *Lease) leaveHold(impatient bool) (t turn, rest time.Duration, lost error) {
	h := l.h
	now := h.c.lock()
	defer h.c.mu.Unlock()
	h.stepLocked(leasefsm.Tick, 0, now)
	last := len(h.leases) == 1
	rest = h.least.Sub(now)
	early := leastHold && last && l.err == nil && rest > 0
	if early && !impatient {
		return turn{verdict: stays}, rest, nil
	}
	lost = l.err
	l.endLocked(ErrReleased)
	l.until = h.fsm.Until()
	h.leases = slices.DeleteFunc(h.leases, func(o *Lease) bool { return o == l })
	if !last {
		return turn{verdict: stays}, 0, lost
	}
	l.held = now.Sub(h.fsm.Since())
	if early {
		h.stepLocked(leasefsm.Release, 0, now)
		h.detachLocked(now)
		return turn{verdict: leaveIt}, 0, lost
	}
	return h.unlockLocked(now), 0, lost
}

// endLocked makes err l's fate, unless it already has one.
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
		err := &LostError{Name: h.req.Name, Cause: lossCauseOf(h.fsm.Cause()), Reason: h.fsm.Cause().String(), Err: h.lastErr}
		h.c.logLater(slog.LevelError, "lease lost", "lock", h.req.Name, "owner", h.req.Owner, "token", h.token, "err", err)
		for _, l := range h.leases {
			if lossTold {
				l.endLocked(err)
			}
		}
		if h.c.observe != nil && len(h.leases) > 0 {
			h.c.observeLossLocked(h.leases[0], now.Sub(h.fsm.Since()), err)
		}
		h.detachLocked(now)
	case leasefsm.Jeopardy:
		h.c.logLater(slog.LevelWarn, "renewal failed, validity remains", "lock", h.req.Name, "left", h.fsm.Until().Sub(now), "err", h.lastErr)
	}
}
