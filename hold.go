package leasehold

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/renewer"
	"github.com/leasehold-dev/leasehold/store"
)

// holds are the grants that a client has, with their deadlines.
type holds struct {
	core
	renewer renewer.Renewer[*hold]
	hints   hints
}

// hold is one grant. The leases that entered it share it.
type hold struct {
	c     *holds
	req   store.Lease // as it was granted
	token fence.Token
	slot  int64                       // as it was granted
	least clock.Instant               // held until here at least, where MinHold asks for it
	fixed bool                        // its owner value is the caller's, and may have other leases
	delay func(try int) time.Duration // pauses between releases of unknown outcome

	renewed atomic.Bool // or is being renewed

	// Guarded by the client's mutex.
	telling int      // events that a goroutine of the package has not told the observer yet
	untold  bool     // the goroutine that was granted the lock has not told the observer that yet
	later   []func() // tell the observer what has happened meanwhile
	fsm     renewer.Lease[*hold]
	shares  []*share
	only    [1]*share     // room for it: most holds have no other
	lastErr error         // of the last renewal
	broken  *store.Broken // why that was denied, as far as is known
	waived  chan struct{} // closed when MinHold is waived; nil unless a release waits for that

	// q had a place in the store's queue, at which it was granted; nil: none. It is set
	// then.
	q waitQueue
}

// waitQueue is what a hold needs of the queue that waited for it.
type waitQueue interface {
	// releaseOrRejoin makes the request r, which releases the hold in the store. It may
	// take the next place in the store's queue with it.
	releaseOrRejoin(ctx context.Context, r store.ReleaseRequest) error
}

// share is what a hold knows of one of its leases.
type share struct {
	h     *hold
	token fence.Token
	base  context.Context // what Context derives from,
	bound bool            // and ends with

	// Guarded by the client's mutex.
	done   chan struct{} // made when somebody asks for it
	err    error         // nil while held, then why not; sticky
	ctx    context.Context
	cancel context.CancelCauseFunc
	until  clock.Instant // end of validity when it was left; 0 before
	held   time.Duration // for how long, if it was the last lease of its hold
}

// disposition is what becomes of a hold when one of its leases leaves it.
type disposition uint8

const (
	keep      disposition = iota // other leases of it are left
	release                      // the store is asked to
	letExpire                    // it ends by its TTL
)

// init makes h a hold of the grant.
func (h *hold) init(c *holds, grant store.Grant, fsm leasefsm.Lease) {
	h.c, h.req, h.token, h.slot, h.delay = c, grant.Lease, grant.Token, grant.Slot, c.delay
	h.fsm = renewer.NewLease(h, fsm)
}

// startLocked renews h from now on, when its grant has arrived. The first lease of it,
// which r asked for, has the share s.
//
// MinHold counts from now, and not from when the request left, as validity does: that may be
// long before anybody held the lock.
func (h *hold) startLocked(s *share, now clock.Instant, r *recipe, base context.Context, bound bool) {
	h.delay, h.fixed, h.untold = r.delay(), r.o.Owner != "", h.c.observe != nil
	if r.o.MinHold > 0 {
		h.least = now.Add(r.o.MinHold)
	}
	h.shares = h.only[:0]
	h.addLocked(s, base, bound)
	h.c.renewer.Add(&h.fsm, now)
	h.c.followEarlyLocked(h, now)
}

// addLocked makes s one more share of h.
func (h *hold) addLocked(s *share, base context.Context, bound bool) {
	s.h, s.base, s.bound, s.token = h, base, bound, h.token
	h.shares = append(h.shares, s)
}

// reenter makes s another share of the hold that outer has one of, and reports whether it
// could: outer may be over.
func (s *share) reenter(outer *share, base context.Context, bound bool) bool {
	h := outer.h
	now := h.c.lock()
	defer h.c.mu.Unlock()
	if h.stepLocked(leasefsm.Tick, 0, now); outer.err != nil {
		return false
	}
	h.addLocked(s, base, bound)
	return true
}

// leave ends s, unless it is the last of its hold and MinHold is not over: rest is
// then how long it has to wait before it calls again. Otherwise leave says what
// becomes of the hold, and why s had been lost, if it had. With impatient it does
// not ask to wait, and leaves the lock to its TTL instead.
func (s *share) leave(impatient bool) (d disposition, rest time.Duration, lost error) {
	h := s.h
	now := h.c.lock()
	defer h.c.mu.Unlock()
	h.stepLocked(leasefsm.Tick, 0, now)
	last := len(h.shares) == 1
	rest = h.least.Sub(now)
	early := leastHold && last && rest > 0 && (s.err == nil || h.endedOnTime())
	if early && !impatient {
		return keep, rest, nil
	}
	lost = s.err
	s.endLocked(ErrReleased)
	s.until = h.fsm.Until()
	h.shares = slices.DeleteFunc(h.shares, func(o *share) bool { return o == s })
	if !last {
		return keep, 0, lost
	}
	s.held = now.Sub(h.fsm.Since())
	h.stepLocked(leasefsm.Release, 0, now)
	if early {
		return letExpire, 0, lost
	}
	return release, 0, lost
}

// endedOnTime reports whether h was lost at a moment that its options had set, so that
// the store still has the lock, and whether nobody else may have it under the same
// owner.
func (h *hold) endedOnTime() bool {
	cause := h.fsm.Cause()
	return !h.fixed && (cause == leasefsm.HeldMax || cause == leasefsm.Expired && h.fsm.Renew == 0)
}

// endLocked ends s with err, unless it has ended already.
func (s *share) endLocked(err error) {
	if s.err != nil {
		return
	}
	s.err = err
	if s.done != nil {
		close(s.done)
	}
	if s.cancel != nil {
		s.cancel(err)
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
		if h.broken != nil && err.Cause == LostDenied {
			err.Reason, err.Broken = h.broken.String(), h.broken
		}
		h.c.logLater(slog.LevelError, "lease lost", "lock", h.req.Name, "owner", h.req.Owner, "token", h.token, "err", err)
		for _, s := range h.shares {
			if lossTold {
				s.endLocked(err)
			}
		}
		if h.c.observe != nil && len(h.shares) > 0 {
			h.shares[0].observeLaterLocked(Lost, now, err)
		}
	case leasefsm.Jeopardy:
		h.c.logLater(slog.LevelWarn, "renewal failed, validity remains", "lock", h.req.Name, "left", h.fsm.Until().Sub(now), "err", h.lastErr)
	}
}

// observeLaterLocked has a goroutine of the package tell the observer what became of s
// at now.
func (s *share) observeLaterLocked(kind EventKind, now clock.Instant, err error) {
	h := s.h
	e := s.event(kind, now.Sub(h.fsm.Since()), err)
	h.telling++
	tell := func() {
		defer func() {
			h.c.mu.Lock()
			h.telling--
			h.c.mu.Unlock()
		}()
		h.c.observe(s.base, e)
	}
	if h.untold {
		h.later = append(h.later, tell)
	} else {
		h.c.notify.Add(tell)
	}
}

// grantTold has the observer told of what has happened to h, now that it was told of its grant.
func (h *hold) grantTold() {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	for _, tell := range h.later {
		h.c.notify.Add(tell)
	}
	h.untold, h.later = false, nil
}

// event returns an event of the hold for the observer.
func (s *share) event(kind EventKind, held time.Duration, err error) Event {
	r := &s.h.req
	return Event{Kind: kind, Name: r.Name, Owner: r.Owner, Token: s.token, Held: held, Err: err}
}

// errClock is what the store said last of leases that a Clock has ended.
var errClock = errors.New("the Clock of the client failed")

// loseAllLocked ends every lease.
func (c *holds) loseAllLocked() {
	for h, ok := c.renewer.First(); ok; h, ok = c.renewer.First() {
		h.lastErr = errClock
		h.stepLocked(leasefsm.Tick, 0, math.MaxInt64)
	}
	c.renewer.Disarm()
}
