package leasehold

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// renewer renews all leases that a client holds, and tells their holders of a loss
// in time. One timer serves all deadlines, and does no I/O; a few goroutines renew,
// many leases at a time. Neither runs while nothing is held or due.
type renewer struct {
	c *Client

	mu      sync.Mutex // guards everything below, and every hold and lease
	holds   deadlines
	due     []*hold // renewals to send
	workers int
	timer   *time.Timer // runs sweep
	armed   bool        // the timer runs
	sweepAt clock.Instant

	queues      map[terms]*queue
	contentions contentions

	returned []*queue    // those with a reservation that nobody has taken yet
	lapse    *time.Timer // runs lapses
	lapsing  bool        // it runs
}

const (
	// maxNap bounds how long the timer runs. Go's timers stand still while the
	// machine is suspended, so the clock is read again this often, and a holder
	// whose lease ended meanwhile is told.
	maxNap = 250 * time.Millisecond
	// maxWorkers renewals are under way at once, of maxBatch leases each.
	maxWorkers = 4
	maxBatch   = 512
	// early: a renewal may be sent that part of its interval before its time, so
	// that leases are renewed together instead of one after the other.
	early = 32
)

func (rn *renewer) init(c *Client) {
	rn.c = c
	rn.queues = make(map[terms]*queue)
	// On a slow machine the timer may fire before it is stopped, and even before the
	// field is set.
	rn.mu.Lock()
	defer rn.mu.Unlock()
	rn.timer = time.AfterFunc(maxNap, rn.sweep)
	rn.timer.Stop()
	rn.lapse = time.AfterFunc(reservedFor, rn.lapses)
	rn.lapse.Stop()
}

func (rn *renewer) now() clock.Instant { return rn.c.clock.Now() }

// errClock is what the store said last of leases that a Clock has ended.
var errClock = errors.New("the Clock of the client failed")

// lock locks the mutex and reads the clock. A section that needs the time gets it
// here and reads the clock no more, since the Clock is the user's: if it does not
// return, nothing is half done. Nobody can judge any lease then, so all are lost.
func (rn *renewer) lock() (now clock.Instant) {
	rn.mu.Lock()
	read := false
	defer func() {
		if !read {
			rn.loseAllLocked()
			rn.mu.Unlock()
		}
	}()
	now = rn.now()
	read = true
	return now
}

// loseAllLocked ends every lease. The renewer's mutex is held.
func (rn *renewer) loseAllLocked() {
	for len(rn.holds) > 0 {
		h := rn.holds[0].h
		h.lastErr = errClock
		rn.stepLocked(h, leasefsm.Tick, 0, math.MaxInt64)
	}
	rn.armed = false
}

// startLocked renews h from now on and returns the first lease of it, which l asked
// for at start. The renewer's mutex is held.
func (rn *renewer) startLocked(h *hold, start, now clock.Instant, l *Lock, base context.Context, bound bool) *Lease {
	h.applyOptionsLocked(start, l)
	h.leases = h.only[:0]
	lease := h.addLeaseLocked(&h.first, base, bound)
	rn.holds.add(h)
	rn.armLocked(now)
	return lease
}

// applyOptionsLocked notes what l wants of a hold that begins at start.
func (h *hold) applyOptionsLocked(start clock.Instant, l *Lock) {
	h.delay, h.least = l.delay(), 0
	if l.o.MinHold > 0 {
		h.least = start.Add(l.o.MinHold)
	}
}

// addLeaseLocked makes l one more lease of h. The renewer's mutex is held.
func (h *hold) addLeaseLocked(l *Lease, base context.Context, bound bool) *Lease {
	l.h, l.base, l.bound, l.token = h, base, bound, h.token
	h.leases = append(h.leases, l)
	return l
}

// reenter makes another lease of the grant that outer has.
func (l *Lease) reenter(base context.Context, bound bool) (*Lease, error) {
	rn := &l.h.c.renewer
	now := rn.lock()
	defer rn.mu.Unlock()
	if rn.stepLocked(l.h, leasefsm.Tick, 0, now); l.err != nil {
		return nil, l.err
	}
	return l.h.addLeaseLocked(new(Lease), base, bound), nil
}

// leave ends l, unless it is the last of its hold and MinHold is not over: rest is
// then how long it has to wait before it calls again. Otherwise leave says what
// becomes of the hold, and why l had been lost, if it had. With impatient it does
// not ask to wait, and leaves the lock to its TTL instead.
func (rn *renewer) leave(l *Lease, impatient bool) (t turn, rest time.Duration, lost error) {
	now := rn.lock()
	defer rn.mu.Unlock()
	h := l.h
	rn.stepLocked(h, leasefsm.Tick, 0, now)
	last := len(h.leases) == 1
	rest = h.least.Sub(now)
	early := leastHold && last && l.err == nil && rest > 0
	if early && !impatient {
		return stays, rest, nil
	}
	lost = l.err
	l.endLocked(ErrReleased)
	l.until = h.fsm.Until()
	h.leases = slices.DeleteFunc(h.leases, func(o *Lease) bool { return o == l })
	if !last {
		return stays, 0, lost
	}
	l.held = now.Sub(h.fsm.Since())
	t, next := h.turnLocked(now)
	if early {
		t = leaveIt
	}
	switch {
	case t == leaveIt, t == releaseIt:
		rn.stepLocked(h, leasefsm.Release, 0, now)
		if t == leaveIt || h.q != nil && h.q.first == nil {
			h.detachLocked(now)
		}
	case t == passItOn:
		rn.passLocked(h, next, now)
	}
	return t, 0, lost
}

// endLocked makes err l's fate, unless it already has one. The renewer's mutex is held.
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

// stepLocked applies an event to h, keeps its place among the deadlines, and tells
// its holders when it is lost. The renewer's mutex is held.
func (rn *renewer) stepLocked(h *hold, e leasefsm.Event, start, now clock.Instant) {
	if e == leasefsm.RenewalSent {
		h.renewed.Store(true)
	}
	before := h.fsm.State()
	h.fsm = h.fsm.Step(e, start, now)
	if h.at >= 0 {
		if next, live := h.fsm.Next(); live {
			rn.holds.move(h.at, next)
		} else {
			rn.holds.remove(h.at)
		}
		rn.armLocked(now)
	}
	after := h.fsm.State()
	if after == before {
		return
	}
	switch after {
	case leasefsm.Lost:
		err := &LostError{Name: h.req.Name, Cause: lossCauseOf(h.fsm.Cause()), Reason: h.fsm.Cause().String(), Err: h.lastErr}
		rn.c.logLater(slog.LevelError, "lease lost", "lock", h.req.Name, "owner", h.req.Owner, "token", h.token, "err", err)
		for _, l := range h.leases {
			if lossTold {
				l.endLocked(err)
			}
		}
		if rn.c.observe != nil && len(h.leases) > 0 {
			rn.observeLossLocked(h.leases[0], now.Sub(h.fsm.Since()), err)
		}
		h.detachLocked(now)
	case leasefsm.Jeopardy:
		rn.c.logLater(slog.LevelWarn, "renewal failed, validity remains", "lock", h.req.Name, "left", h.fsm.Until().Sub(now), "err", h.lastErr)
	}
}

// armLocked sets the timer for the earliest deadline, unless it fires before that
// anyway. The renewer's mutex is held.
func (rn *renewer) armLocked(now clock.Instant) {
	if len(rn.holds) == 0 { // if it fires, for nothing, that is cheaper than to set it for each lease
		return
	}
	next := rn.holds[0].at
	if rn.armed && rn.sweepAt <= next {
		return
	}
	if clockRead {
		next = min(next, now.Add(maxNap))
	}
	rn.armed, rn.sweepAt = true, next
	rn.timer.Reset(max(rn.sweepAt.Sub(now), 0))
}

// sweep deals with every hold whose time has come, and sees to it that
// somebody renews what is due.
func (rn *renewer) sweep() {
	rn.c.contain(func() {
		rn.sweepDue()
		now := rn.lock() // again: of many leases, dealing with them took time
		defer rn.mu.Unlock()
		rn.armed = false
		rn.armLocked(now)
	}, nil)
}

func (rn *renewer) sweepDue() {
	now := rn.lock()
	defer rn.mu.Unlock()
	rn.armed, rn.sweepAt = true, now // what follows needs no timer set
	for len(rn.holds) > 0 {
		h := rn.holds[0].h
		if h.fsm.Due(now) || h.fsm.Due(now.Add(h.fsm.Renew/early)) {
			rn.due = append(rn.due, h)
			rn.stepLocked(h, leasefsm.RenewalSent, 0, now)
		} else if rn.holds[0].at <= now {
			rn.stepLocked(h, leasefsm.Tick, 0, now)
		} else {
			break
		}
	}
	if len(rn.due) > 0 && rn.workers < maxWorkers {
		rn.workers++
		go rn.work()
	}
}

// work renews what is due until nothing is.
func (rn *renewer) work() {
	done := false
	defer func() {
		if !done { // a function of the user's ended this goroutine
			go rn.work()
		}
	}()
	for {
		rn.mu.Lock()
		n := min(len(rn.due), maxBatch)
		if n == 0 {
			rn.workers--
			done = true
			rn.mu.Unlock()
			return
		}
		batch := slices.Clone(rn.due[:n])
		rn.due = slices.Delete(rn.due, 0, n)
		rn.mu.Unlock()
		rn.c.contain(func() { rn.renew(context.Background(), batch) }, nil)
	}
}

// renew asks the store to renew batch, and waits for the answers for no longer
// than until the next renewal of any of them would be due.
func (rn *renewer) renew(ctx context.Context, batch []*hold) []error {
	reqs := make([]store.Lease, len(batch))
	bound := batch[0].req.TTL
	for i, h := range batch {
		reqs[i] = h.req
		bound = min(bound, validity.RenewAfter(h.req.TTL))
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	settled := false
	defer func() {
		if !settled { // the clock or the store panicked
			rn.renewalFailed(batch)
		}
	}()
	start := rn.now()
	errs := rn.c.store.Renew(ctx, reqs)
	if !renewalFromStart {
		start = rn.now()
	}

	now := rn.lock()
	defer rn.mu.Unlock()
	settled = true
	for i, h := range batch {
		h.lastErr = errs[i]
		switch {
		case errs[i] == nil:
			rn.stepLocked(h, leasefsm.Renewed, start, now)
		case errors.Is(errs[i], store.ErrNotHeld):
			rn.stepLocked(h, leasefsm.RenewalDenied, 0, now)
		default:
			rn.stepLocked(h, leasefsm.RenewalUnknown, 0, now)
		}
	}
	return errs
}

// renewalFailed has the leases of batch renewed again before long.
func (rn *renewer) renewalFailed(batch []*hold) {
	now := rn.lock()
	defer rn.mu.Unlock()
	for _, h := range batch {
		h.lastErr = errRenewal
		rn.stepLocked(h, leasefsm.RenewalUnknown, 0, now)
	}
}

var errRenewal = errors.New("the renewal panicked")

// renewNow is Extend.
func (rn *renewer) renewNow(ctx context.Context, l *Lease) error {
	now := rn.lock()
	rn.stepLocked(l.h, leasefsm.RenewalSent, 0, now)
	rn.mu.Unlock()
	err := rn.renew(ctx, []*hold{l.h})[0]
	if over := l.Err(); over != nil {
		return over
	}
	return err
}
