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
	"github.com/leasehold-dev/leasehold/store"
)

// keeper drives the lives of all leases a client holds: it tells holders of
// loss in time, and has leases renewed. One timer serves all deadlines, and
// what it runs does no I/O; a few goroutines renew, many leases at a time.
// Neither is there while nothing is held or due.
type keeper struct {
	c *Client

	mu      sync.Mutex // guards everything below, and every hold and lease
	holds   deadlines
	due     []*hold // renewals to send
	workers int
	timer   *time.Timer // runs sweep
	armed   bool        // the timer runs
	sweepAt clock.Instant

	queues map[terms]*queue
	crowds crowds

	returned []*queue    // with a place that nobody has taken yet, see kept
	lapse    *time.Timer // runs lapses
	lapsing  bool        // it runs
}

const (
	// maxNap bounds how long the timer runs: Go's timers stand still while the
	// machine is suspended, so the clock is looked at again this often, and a
	// lease that ended meanwhile is told so.
	maxNap = 250 * time.Millisecond
	// maxWorkers renewals are under way at once, of maxBatch leases each.
	maxWorkers = 4
	maxBatch   = 512
	// early: a renewal may be sent that part of its interval before its time, so
	// that leases are renewed together instead of one after the other.
	early = 32
)

func (k *keeper) init(c *Client) {
	k.c = c
	k.queues = make(map[terms]*queue)
	// On a machine that is slow enough the timer fires before it is stopped, and
	// even before it is kept.
	k.mu.Lock()
	defer k.mu.Unlock()
	k.timer = time.AfterFunc(maxNap, k.sweep)
	k.timer.Stop()
	k.lapse = time.AfterFunc(keptFor, k.lapses)
	k.lapse.Stop()
}

func (k *keeper) now() clock.Instant { return k.c.clock.Now() }

// errClock is what the store said last of leases that a Clock has ended.
var errClock = errors.New("the Clock of the client failed")

// lock locks the mutex and reads the clock. A section that needs the time gets it
// here and reads the clock no more, since the Clock is the user's: if it does not
// return, nothing is half done. Nobody can judge any lease then, so all are lost.
func (k *keeper) lock() (now clock.Instant) {
	k.mu.Lock()
	read := false
	defer func() {
		if !read {
			k.loseAll()
			k.mu.Unlock()
		}
	}()
	now = k.now()
	read = true
	return now
}

// loseAll ends every lease. The keeper's mutex is held.
func (k *keeper) loseAll() {
	for len(k.holds) > 0 {
		h := k.holds[0].h
		h.lastErr = errClock
		k.step(h, leasefsm.Tick, 0, math.MaxInt64)
	}
	k.armed = false
}

// begin keeps h from now on and returns the first lease of it, which l asked
// for at start. The keeper's mutex is held.
func (k *keeper) begin(h *hold, start, now clock.Instant, l *Lock, base context.Context, bound bool) *Lease {
	h.suit(start, l)
	h.leases = h.only[:0]
	lease := h.enter(&h.first, base, bound)
	k.holds.add(h)
	k.arm(now)
	return lease
}

// suit notes what l wants of a hold that begins at start.
func (h *hold) suit(start clock.Instant, l *Lock) {
	h.delay, h.least = l.delay(), 0
	if l.o.MinHold > 0 {
		h.least = start.Add(l.o.MinHold)
	}
}

// enter makes l one more lease of h. The keeper's mutex is held.
func (h *hold) enter(l *Lease, base context.Context, bound bool) *Lease {
	l.h, l.base, l.bound, l.token = h, base, bound, h.token
	h.leases = append(h.leases, l)
	return l
}

// reenter makes another lease of the grant that outer has.
func (l *Lease) reenter(base context.Context, bound bool) (*Lease, error) {
	k := &l.h.c.keep
	now := k.lock()
	defer k.mu.Unlock()
	if k.step(l.h, leasefsm.Tick, 0, now); l.err != nil {
		return nil, l.err
	}
	return l.h.enter(new(Lease), base, bound), nil
}

// leave ends l, unless it is the last of its hold and MinHold is not over: rest is
// then how long it has to wait before it calls again. Otherwise leave says what
// becomes of the hold, and why l had been lost, if it had. With impatient it does
// not ask to wait, and leaves the lock to its TTL instead.
func (k *keeper) leave(l *Lease, impatient bool) (t turn, rest time.Duration, lost error) {
	now := k.lock()
	defer k.mu.Unlock()
	h := l.h
	k.step(h, leasefsm.Tick, 0, now)
	last := len(h.leases) == 1
	rest = h.least.Sub(now)
	early := leastHold && last && l.err == nil && rest > 0
	if early && !impatient {
		return stays, rest, nil
	}
	lost = l.err
	l.end(ErrReleased)
	l.until = h.fsm.Until()
	h.leases = slices.DeleteFunc(h.leases, func(o *Lease) bool { return o == l })
	if !last {
		return stays, 0, lost
	}
	l.held = now.Sub(h.fsm.Since())
	t, next := h.turn(now)
	if early {
		t = leaveIt
	}
	switch {
	case t == leaveIt, t == giveItBack:
		k.step(h, leasefsm.Release, 0, now)
		if t == leaveIt || h.q != nil && h.q.first == nil {
			h.detach(now)
		}
	case t == passItOn:
		k.pass(h, next, now)
	}
	return t, 0, lost
}

// end makes err l's fate, unless it already has one. The keeper's mutex is held.
func (l *Lease) end(err error) {
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

// step applies an event to h, keeps its place among the deadlines, and tells
// its holders when it is lost. The keeper's mutex is held.
func (k *keeper) step(h *hold, e leasefsm.Event, start, now clock.Instant) {
	if e == leasefsm.RenewalSent {
		h.renewed.Store(true)
	}
	before := h.fsm.State()
	h.fsm = h.fsm.Step(e, start, now)
	if h.at >= 0 {
		if next, live := h.fsm.Next(); live {
			k.holds.move(h.at, next)
		} else {
			k.holds.remove(h.at)
		}
		k.arm(now)
	}
	after := h.fsm.State()
	if after == before {
		return
	}
	switch after {
	case leasefsm.Lost:
		err := &LostError{Name: h.req.Name, Reason: h.fsm.Cause().String(), Err: h.lastErr}
		k.c.logLater(slog.LevelError, "lease lost", "lock", h.req.Name, "owner", h.req.Owner, "token", h.token, "err", err)
		for _, l := range h.leases {
			if lossTold {
				l.end(err)
			}
		}
		if k.c.observe != nil && len(h.leases) > 0 {
			k.observeLoss(h.leases[0], now.Sub(h.fsm.Since()), err)
		}
		h.detach(now)
	case leasefsm.Jeopardy:
		k.c.logLater(slog.LevelWarn, "renewal failed, validity remains", "lock", h.req.Name, "left", h.fsm.Until().Sub(now), "err", h.lastErr)
	}
}

// arm sets the timer for the earliest deadline, unless it fires before that
// anyway. The keeper's mutex is held.
func (k *keeper) arm(now clock.Instant) {
	if len(k.holds) == 0 { // if it fires, for nothing, that is cheaper than to set it for each lease
		return
	}
	next := k.holds[0].at
	if k.armed && k.sweepAt <= next {
		return
	}
	if clockRead {
		next = min(next, now.Add(maxNap))
	}
	k.armed, k.sweepAt = true, next
	k.timer.Reset(max(k.sweepAt.Sub(now), 0))
}

// sweep deals with every hold whose time has come, and sees to it that
// somebody renews what is due.
func (k *keeper) sweep() {
	k.c.contain(func() {
		k.sweepDue()
		now := k.lock() // again: of many leases, dealing with them took time
		defer k.mu.Unlock()
		k.armed = false
		k.arm(now)
	}, nil)
}

func (k *keeper) sweepDue() {
	now := k.lock()
	defer k.mu.Unlock()
	k.armed, k.sweepAt = true, now // what follows needs no timer set
	for len(k.holds) > 0 {
		h := k.holds[0].h
		if h.fsm.Due(now) || h.fsm.Due(now.Add(h.fsm.Renew/early)) {
			k.due = append(k.due, h)
			k.step(h, leasefsm.RenewalSent, 0, now)
		} else if k.holds[0].at <= now {
			k.step(h, leasefsm.Tick, 0, now)
		} else {
			break
		}
	}
	if len(k.due) > 0 && k.workers < maxWorkers {
		k.workers++
		go k.work()
	}
}

// work renews what is due until nothing is.
func (k *keeper) work() {
	done := false
	defer func() {
		if !done { // a function of the user's ended this goroutine
			go k.work()
		}
	}()
	for {
		k.mu.Lock()
		n := min(len(k.due), maxBatch)
		if n == 0 {
			k.workers--
			done = true
			k.mu.Unlock()
			return
		}
		batch := slices.Clone(k.due[:n])
		k.due = slices.Delete(k.due, 0, n)
		k.mu.Unlock()
		k.c.contain(func() { k.renew(context.Background(), batch) }, nil)
	}
}

// renew asks the store to renew batch, and waits for the answers for no longer
// than until the next renewal of any of them would be due.
func (k *keeper) renew(ctx context.Context, batch []*hold) []error {
	reqs := make([]store.Request, len(batch))
	bound := batch[0].req.TTL
	for i, h := range batch {
		reqs[i] = h.req
		bound = min(bound, h.req.TTL/3)
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	settled := false
	defer func() {
		if !settled { // the clock or the store panicked
			k.renewalFailed(batch)
		}
	}()
	start := k.now()
	errs := k.c.store.Renew(ctx, reqs)
	if !renewalFromStart {
		start = k.now()
	}

	now := k.lock()
	defer k.mu.Unlock()
	settled = true
	for i, h := range batch {
		h.lastErr = errs[i]
		switch {
		case errs[i] == nil:
			k.step(h, leasefsm.Renewed, start, now)
		case errors.Is(errs[i], store.ErrNotHeld):
			k.step(h, leasefsm.RenewalDenied, 0, now)
		default:
			k.step(h, leasefsm.RenewalUnknown, 0, now)
		}
	}
	return errs
}

// renewalFailed has the leases of batch renewed again before long.
func (k *keeper) renewalFailed(batch []*hold) {
	now := k.lock()
	defer k.mu.Unlock()
	for _, h := range batch {
		h.lastErr = errRenewal
		k.step(h, leasefsm.RenewalUnknown, 0, now)
	}
}

var errRenewal = errors.New("the renewal panicked")

// renewNow is Extend.
func (k *keeper) renewNow(ctx context.Context, l *Lease) error {
	now := k.lock()
	k.step(l.h, leasefsm.RenewalSent, 0, now)
	k.mu.Unlock()
	err := k.renew(ctx, []*hold{l.h})[0]
	if over := l.Err(); over != nil {
		return over
	}
	return err
}
