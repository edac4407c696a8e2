package leasehold

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// Cohort bounds how a lease is passed on from one goroutine of a process to the
// next that waits for the same lock, without asking the store. Each pass has a
// larger token and a Lease of its own, and costs a microsecond instead of a round
// trip. Waiting goroutines are served in FIFO order; those of other processes are
// served when a bound is reached.
//
// At a bound, one round trip asks the store whether anybody waits elsewhere, or in
// this process with other options (see Lock.Acquire). If so, the lock is released
// and this process joins the line again. If not, both bounds start anew.
//
// Zero in either field allows no pass, so &Cohort{} turns passing off.
type Cohort struct {
	// Passes is the largest number of passes in a row.
	Passes int
	// For is how long after this process was granted the lock a pass may begin. It
	// does not end anybody's hold: LockOptions.MaxHold does.
	For time.Duration
}

// defaultCohort is what a nil Options.Cohort means.
var defaultCohort = Cohort{Passes: 64, For: 100 * time.Millisecond}

// most passes in a row; 0 switches passing off.
func (c Cohort) most() int {
	if c.Passes <= 0 || c.For <= 0 {
		return 0
	}
	return min(c.Passes, store.MaxSpare)
}

// passesOn says whether a lease of these terms is passed on. One that is not
// renewed is not: the next would get less of a lease than it asked for.
func (q *queue) passesOn() bool { return q.c.cohort.most() > 0 && q.life.Renew > 0 }

// spare is how many tokens a lease is asked for besides its own when so many
// wait: no more than may well be used. Tokens must not outrun the clock, from
// which a node that has lost its counter goes on.
func (q *queue) spare(waiters int) int {
	if !q.passesOn() {
		return 0
	}
	return min(8*(waiters+1), q.c.cohort.most())
}

// reserveLocked notes the tokens that h may use. The renewer's mutex is held.
func (h *hold) reserveLocked(first fence.Token, n int) { h.next, h.spare = first, n }

// turn is what becomes of a hold that its last lease leaves.
type turn uint8

const (
	stays turn = iota // other leases of it are left
	releaseIt
	passItOn
	askAround // whether others wait: a bound is reached, or tokens are used up
	leaveIt   // until its TTL is over
)

// turnLocked says what becomes of h at now, and who is next. A lost lease has no queue.
// The renewer's mutex is held.
func (h *hold) turnLocked(now clock.Instant) (turn, *waiter) {
	if h.q == nil {
		return releaseIt, nil
	}
	w, bounds := h.q.foremostLocked(), h.c.cohort
	switch {
	case w == nil, !h.fsm.Passable(now):
		return releaseIt, nil
	case h.spare == 0, passesBounded && (h.passes >= bounds.Passes || now.Sub(h.mark) >= bounds.For):
		return askAround, w
	}
	return passItOn, w
}

// passLocked makes w, of its queue, the holder of h, whose leases have all left. The
// renewer's mutex is held.
func (rn *renewer) passLocked(h *hold, w *waiter, now clock.Instant) {
	h.q.removeLocked(w)
	h.passes++
	h.spare--
	if passesDraw {
		h.token = h.next
	}
	h.next++
	rn.stepLocked(h, leasefsm.Passed, 0, now)
	h.applyOptionsLocked(now, w.l)
	w.deliverLocked(answer{lease: h.addLeaseLocked(new(Lease), w.ctx, w.bound), how: Passed})
}

// askAround asks the store for more tokens, and passes h on unless a bound is
// reached and it says that somebody waits elsewhere, or it has no tokens to give. It is
// on a context of its own, as a release is.
func (h *hold) askAround(ctx context.Context) (passed bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), validity.RenewAfter(h.req.TTL))
	defer cancel()
	// The tokens that are left are used as well.
	r := store.ReserveRequest{Lease: h.req, Above: h.next + fence.Token(h.spare) - 1, Count: max(1, h.c.cohort.most()-h.spare)}
	d, err := h.c.waiter.ReserveTokens(ctx, r)

	rn := &h.c.renewer
	now := rn.lock()
	defer rn.mu.Unlock()
	rn.stepLocked(h, leasefsm.Tick, 0, now)
	if err == nil && d.Token > h.token {
		if d.Token == r.Above+1 {
			h.spare += d.Count
		} else {
			h.reserveLocked(d.Token, d.Count)
		}
		if !d.Waiting {
			h.passes, h.mark = 0, now
		}
		if t, w := h.turnLocked(now); t == passItOn {
			rn.passLocked(h, w, now)
			return true
		}
	}
	rn.stepLocked(h, leasefsm.Release, 0, now)
	return false
}
