package leasehold

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/store"
)

// noPasses are the bounds of leases that are not passed on.
var noPasses waitq.Cohort

// boundsFor returns the bounds for leases on those terms. A lease that is not renewed
// is not passed on: the next holder would get less of a lease than it asked for.
func (c *Client) boundsFor(t terms) *waitq.Cohort {
	if t.life.Renew == 0 || !t.passable() {
		return &noPasses
	}
	return &c.cohort
}

// attachLocked makes h, which was just granted, the lease that q passes on, if q passes
// leases on.
func (h *hold) attachLocked(q *queue) {
	q.reason = nil
	if q.m.Holds() {
		q.h, h.q = h, q
	}
}

// detachLocked undoes attachLocked, since h is over: its waiters ask the store.
func (h *hold) detachLocked(now clock.Instant) {
	q := h.q
	if q == nil {
		return
	}
	q.h, h.q = nil, nil
	if q.m.Len() > 0 {
		q.reason, q.reasonAt = h.busyLocked(now), now
	}
	q.stepLocked(waitq.Event[*waiter]{Kind: waitq.LeaseOver}, now)
}

// detachReleased lets the waiters of h ask the store, now that h was released.
func (h *hold) detachReleased() {
	if h.q == nil { // and only the goroutine that releases h could set it now
		return
	}
	now := h.c.lock()
	defer h.c.mu.Unlock()
	h.detachLocked(now)
}

// busyLocked is the error for those who want the lock that h holds.
func (h *hold) busyLocked(now clock.Instant) *BusyError {
	if h.holder == nil {
		who := store.DecodeHolder(h.req.Owner, h.req.Meta)
		h.holder = &who
	}
	return &BusyError{Name: h.req.Name, Holder: *h.holder, ExpiresIn: max(h.fsm.Until().Sub(now), time.Nanosecond)}
}

// turn is what becomes of a hold that its last lease leaves. With askAround it is what
// the store is asked for.
type turn struct {
	verdict
	above fence.Token
	count int
}

type verdict uint8

const (
	stays verdict = iota // other leases of it are left
	releaseIt
	passItOn
	askAround // whether others wait: a bound is reached, or tokens are used up
	leaveIt   // until its TTL is over
)

// unlockLocked ends h at now, when its last lease has left it, unless it is
// passed on or the store has to be asked first.
func (h *hold) unlockLocked(now clock.Instant) turn {
	if h.q != nil {
		a, _ := h.q.stepLocked(waitq.Event[*waiter]{Kind: waitq.Unlock, Passable: h.fsm.Passable(now)}, now)
		switch a.Kind {
		case waitq.Pass:
			h.passLocked(a, now)
			return turn{verdict: passItOn}
		case waitq.ReserveTokens:
			return turn{askAround, a.Token, a.Count}
		}
		if !h.q.m.Holds() { // nobody waits for the release
			h.q.h, h.q = nil, nil
		}
	}
	h.stepLocked(leasefsm.Release, 0, now)
	return turn{verdict: releaseIt}
}

// passLocked carries out a pass of h, whose leases have all left.
func (h *hold) passLocked(pass waitq.Action[*waiter], now clock.Instant) {
	w := pass.Waiter.Of
	h.token = pass.Token
	h.stepLocked(leasefsm.Passed, 0, now)
	h.applyOptionsLocked(now, w.l)
	w.endLocked(answer{lease: h.addLeaseLocked(new(Lease), w.ctx, w.bound), how: Passed})
}

// askAround asks the store for more tokens, and passes h on unless a bound is
// reached and it says that somebody waits elsewhere, or it has no tokens to give. It is
// on a context of its own, as a release is.
func (h *hold) askAround(ctx context.Context, t turn) (passed bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), validity.RenewAfter(h.req.TTL))
	defer cancel()
	r := store.ReserveRequest{Lease: h.req, Above: t.above, Count: t.count}
	d, err := h.c.waiter.ReserveTokens(ctx, r)

	now := h.c.lock()
	defer h.c.mu.Unlock()
	h.stepLocked(leasefsm.Tick, 0, now)
	if h.q != nil { // or else it is lost
		e := waitq.Event[*waiter]{Kind: waitq.TokensReserved, Passable: h.fsm.Passable(now)}
		if err == nil {
			e.Token, e.Count, e.Waiting = d.Token, d.Count, d.Waiting
		}
		if a, _ := h.q.stepLocked(e, now); a.Kind == waitq.Pass {
			h.passLocked(a, now)
			return true
		}
	}
	h.stepLocked(leasefsm.Release, 0, now)
	return false
}
