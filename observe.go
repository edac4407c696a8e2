package leasehold

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// started returns the time, or 0 without an observer, since nobody needs it then.
func (c *core) started() clock.Instant {
	if c.observe == nil {
		return 0
	}
	return c.clock.Now()
}

// seeOutcome tells the observer how a wait has ended. A re-entry, for which how is 0, is no
// event.
func (c *queues) seeOutcome(ctx context.Context, r *recipe, began clock.Instant, lease *Lease, how EventKind, err error) {
	if c.observe == nil {
		return
	}
	e := Event{Kind: how, Name: r.name, Call: r.call.number, Waited: c.clock.Now().Sub(began), Err: err}
	switch {
	case err != nil:
		e.Kind = Failed
	case how == 0:
		return
	default:
		e.Owner, e.Token = lease.Owner(), lease.Token()
	}
	c.observe(ctx, e)
	if lease != nil {
		lease.h.grantTold()
	}
}

// listens reports whether a function of the user's wants to know why the lock is waited
// for.
func (r *recipe) listens() bool { return r.o.OnWait != nil || r.c.observe != nil }

// seeWaiting tells LockOptions.OnWait why the lock is waited for. It tells the observer only if
// the cause is not that of told, the last one that the observer has seen, and updates told.
func (r *recipe) seeWaiting(ctx context.Context, began clock.Instant, reason error, told *cause) {
	if r.o.OnWait != nil {
		r.o.OnWait(reason)
	}
	c := causeOf(reason)
	if r.c.observe == nil || c == *told {
		return
	}
	*told = c
	r.c.observe(ctx, Event{Kind: Waiting, Name: r.name, Call: r.call.number, Position: c.position, Waited: r.c.clock.Now().Sub(began), Err: reason})
}
