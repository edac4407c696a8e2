package leasehold

import (
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/store"
)

var _ waitQueue = (*queue)(nil)

// unlockLocked passes the queue's hold, which its last lease has left, to the next
// waiter, if waitq.Queue says so.
func (q *queue) unlockLocked(now clock.Instant) turn {
	a, _ := q.stepLocked(waitq.Event[*waiter]{Kind: waitq.Unlock, Passable: q.h.fsm.Passable(now)}, now)
	switch a.Kind {
	case waitq.Pass:
		q.passLocked(a, now)
		return turn{verdict: passItOn}
	case waitq.ReserveTokens:
		return turn{askAround, a.Token, a.Count}
	}
	if !q.m.Holds() { // nobody waits for the release
		q.h.attached, q.h = false, nil
	}
	return turn{verdict: releaseIt}
}

// passReservedLocked is unlockLocked with the tokens that the store has reserved since.
func (q *queue) passReservedLocked(reserved store.Reserved, err error, now clock.Instant) (passed bool) {
	e := waitq.Event[*waiter]{Kind: waitq.TokensReserved, Passable: q.h.fsm.Passable(now)}
	if err == nil {
		e.Token, e.Count, e.Waiting = reserved.Token, reserved.Count, reserved.Waiting
	}
	a, _ := q.stepLocked(e, now)
	if a.Kind != waitq.Pass {
		return false
	}
	q.passLocked(a, now)
	return true
}

// passLocked carries out a pass of the queue's hold, whose leases have all left.
func (q *queue) passLocked(pass waitq.Action[*waiter], now clock.Instant) {
	h, w := q.h, pass.Waiter.Of
	h.token = pass.Token
	h.stepLocked(leasefsm.Passed, 0, now)
	h.applyOptionsLocked(now, w.r)
	l := new(Lease)
	h.addLocked(&l.share, w.ctx, w.bound)
	w.endLocked(answer{lease: l, how: Passed})
}

// overLocked forgets the queue's hold, which is over: the waiters ask the store.
func (q *queue) overLocked(now clock.Instant) {
	h := q.h
	q.h = nil
	if q.m.Len() > 0 {
		q.reason, q.reasonAt = h.busyLocked(now), now
	}
	q.stepLocked(waitq.Event[*waiter]{Kind: waitq.LeaseOver}, now)
}
