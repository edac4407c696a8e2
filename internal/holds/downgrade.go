package holds

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// errLateDowngrade is what is known last of a writer's lease that was downgraded too late.
var errLateDowngrade = errors.New("it became a reader's, and the answer took so long that the validity of that was over")

// Downgrade makes the request, and returns the reader's lease, and whether the writer's hold has
// ended by it: the caller then calls ObserveRelease. It calls no function of the user's: that
// could release l, and would wait for Downgrade to return.
func (l *Lease) Downgrade(ctx context.Context) (next *Lease, over bool, err error) {
	h, c := l.h, l.h.c
	if err := h.req.CheckDowngrade(c.Store.Caps()); err != nil {
		return nil, false, err
	}
	l.releasing.Lock() // nobody releases it meanwhile
	defer l.releasing.Unlock()
	if err := l.soleOfItsHold(); err != nil {
		return nil, false, err
	}
	bounded, cancel := context.WithTimeout(ctx, validity.RenewAfter(h.req.TTL))
	defer cancel()
	start := c.Clock.Now()
	grant, err := c.Store.Downgrade(bounded, h.req)
	next, over, lost := l.replace(grant, err, start)
	switch {
	case err != nil:
		return nil, false, cmp.Or(lost, err)
	case next == nil:
		c.drop(ctx, store.ReleaseRequest{Lease: h.req})
		return nil, false, lost
	}
	return next, over, nil
}

// soleOfItsHold returns nil if l is held, and no other lease has re-entered its grant.
func (l *Lease) soleOfItsHold() error {
	if err := l.Err(); err != nil {
		return err
	}
	l.h.c.mu.Lock()
	defer l.h.c.mu.Unlock()
	if len(l.h.leases) > 1 {
		return fmt.Errorf("%w: lock %q: other leases that re-entered the writer's are held: release them first", store.ErrInvalid, l.h.req.Name)
	}
	return nil
}

// replace ends l, whose downgrade began at start and ended with err, and returns the
// lease that takes its place, and whether the hold of l is over; or why l is lost.
func (l *Lease) replace(grant store.Grant, err error, start clock.Instant) (next *Lease, over bool, lost error) {
	h, c := l.h, l.h.c
	now := c.lock()
	defer c.mu.Unlock()
	if errors.Is(err, store.ErrNotHeld) {
		h.stepLocked(leasefsm.RenewalDenied, 0, now)
	}
	h.stepLocked(leasefsm.Tick, 0, now)
	if l.err != nil || err != nil {
		return nil, false, l.err
	}
	next = c.newLease(grant, leasefsm.New(h.fsm.Config).Step(leasefsm.Granted, start, now))
	r := next.h
	if !r.fsm.Live() { // renewals may have kept the writer's lease valid, but the store has it no more
		h.lastErr = errLateDowngrade
		h.stepLocked(leasefsm.RenewalDenied, 0, now)
		return nil, false, l.err
	}
	l.detached, l.released = true, true
	if over = l.leaveLocked(now); !over { // other leases re-entered it meanwhile
		h.stepLocked(leasefsm.RenewalDenied, 0, now)
	}
	r.RetryDelay, r.least, next.base, next.bound = h.RetryDelay, h.least, l.base, l.bound
	r.startLocked(next, now)
	return next, over, nil
}
