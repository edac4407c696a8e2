package leasehold

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// Downgrade makes the writer of a read-write lock a reader, without a moment in which
// another can write: what was written is what is read. It blocks for the store's answer.
// Stop writing before you call it.
//
// It returns the reader's lease, which has a larger token, a context of its own, and the
// options of l; MaxHold counts anew. l ends with ErrReleased, and releasing it does
// nothing. Readers that wait get the lock as well, up to the first writer in the queue.
//
// The error matches ErrLost or ErrReleased if l is over, ErrInvalid if it is no writer's
// or if other leases that re-entered it are held, and ErrUnsupported if the store cannot
// do it. After any other error others may read already: call Downgrade again, or release
// l.
func (l *Lease) Downgrade(ctx context.Context) (*Lease, error) {
	mustHave(ctx)
	began := l.h.c.started()
	next, over, err := l.downgrade(ctx)
	if next != nil && l.h.c.observe != nil {
		l.observeDowngrade(ctx, next, over, began)
	}
	return next, err
}

// errLateDowngrade is what is known last of a writer's lease that was downgraded too late.
var errLateDowngrade = errors.New("it became a reader's, and the answer took so long that the validity of that was over")

// downgrade makes the request, and reports whether the writer's hold has ended by it. It calls
// no function of the user's: that could release l, and would wait for downgrade to return.
func (l *Lease) downgrade(ctx context.Context) (next *Lease, over bool, err error) {
	h, c := l.h, l.h.c
	if err := h.req.CheckDowngrade(c.store.Caps()); err != nil {
		return nil, false, err
	}
	l.releasing.Lock() // nobody releases it meanwhile
	defer l.releasing.Unlock()
	if err := l.soleOfItsHold(); err != nil {
		return nil, false, err
	}
	bounded, cancel := context.WithTimeout(ctx, validity.RenewAfter(h.req.TTL))
	defer cancel()
	start := c.clock.Now()
	grant, err := c.store.Downgrade(bounded, h.req)
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

// observeDowngrade tells the observer that the lease next has taken the place of l, and
// that l was released if its hold is over. If the observer ends the goroutine, the caller
// does not get next, so it is released.
func (l *Lease) observeDowngrade(ctx context.Context, next *Lease, over bool, began clock.Instant) {
	returned := false
	defer func() {
		if !returned {
			next.discard()
		}
	}()
	if over {
		l.observeRelease(nil)
	}
	e := next.event(Acquired, 0, nil)
	e.Call, e.Waited = calls.Add(1), next.h.c.clock.Now().Sub(began)
	next.h.c.observe(ctx, e)
	next.h.grantTold()
	returned = true
}

// soleOfItsHold returns nil if l is held, and no other lease has re-entered its grant.
func (l *Lease) soleOfItsHold() error {
	if err := l.Err(); err != nil {
		return err
	}
	l.h.c.mu.Lock()
	defer l.h.c.mu.Unlock()
	if len(l.h.shares) > 1 {
		return invalid("lock %q: other leases that re-entered the writer's are held: release them first", l.h.req.Name)
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
	next = newLease(c, grant, leasefsm.New(h.fsm.Config).Step(leasefsm.Granted, start, now))
	r := next.h
	if !r.fsm.Live() { // renewals may have kept the writer's lease valid, but the store has it no more
		h.lastErr = errLateDowngrade
		h.stepLocked(leasefsm.RenewalDenied, 0, now)
		return nil, false, l.err
	}
	l.endLocked(ErrReleased)
	l.until, l.held = h.fsm.Until(), now.Sub(h.fsm.Since())
	l.detached, l.released = true, true
	h.shares = slices.DeleteFunc(h.shares, func(o *share) bool { return o == &l.share })
	if over = len(h.shares) == 0; over {
		h.stepLocked(leasefsm.Release, 0, now)
	} else { // they re-entered meanwhile
		h.stepLocked(leasefsm.RenewalDenied, 0, now)
	}
	r.delay, r.least, r.shares, r.untold = h.delay, h.least, r.only[:0], c.observe != nil
	r.addLocked(&next.share, l.base, l.bound)
	c.renewer.Add(&r.fsm, now)
	return next, over, nil
}
