package leasehold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/store"
)

// wait asks for the lock until it is granted, tries are used up, ctx ends, or
// the answer is one that waiting cannot change. With bound, what is derived from
// the lease's context ends with ctx.
func (c *queues) wait(ctx context.Context, r *recipe, tries int, bound bool) (*Lease, error) {
	mustHave(ctx)
	began := c.started()
	r = r.calledWith(ctx)
	lease, how, err := c.get(ctx, r, tries, bound, began)
	returned := false
	defer func() {
		if !returned && lease != nil { // the Observer failed
			lease.discard()
		}
	}()
	c.seeOutcome(ctx, r, began, lease, how, err)
	returned = true
	return lease, err
}

// started is when a wait began, as far as somebody observes it.
func (c *queues) started() clock.Instant {
	if c.observe == nil {
		return 0
	}
	return c.clock.Now()
}

// seeOutcome tells the observer how a wait has ended; how is 0 for a re-entry.
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
}

// get is wait, and says how the lease was obtained: 0 by re-entry.
func (c *queues) get(ctx context.Context, r *recipe, tries int, bound bool, began clock.Instant) (*Lease, EventKind, error) {
	if err := store.CheckName(r.name); err != nil {
		return nil, 0, err
	}
	life, err := r.o.life()
	if err != nil {
		return nil, 0, err
	}
	caps := c.store.Caps()
	if err := caps.CheckTTL(life.TTL); err != nil {
		return nil, 0, err
	}
	if r.o.Require > caps.Class {
		return nil, 0, fmt.Errorf("%w: lock %q requires %v, and this store (%s, nodes: %d) gives %v at most", ErrUnsupported, r.name, r.o.Require, caps.Engine, caps.Nodes, caps.Class)
	}
	want, err := r.take.check(r.name, r.o.Weight, caps)
	if err != nil {
		return nil, 0, err
	}
	if outer, ok := ctx.Value(leaseKey{&c.core, r.name}).(*Lease); ok {
		if err := want.reenters(outer.h.req, r.o.Require); err != nil {
			return nil, 0, err
		}
		lease := new(Lease)
		if err := lease.reenter(&outer.share, ctx, bound); err != nil {
			return nil, 0, err
		}
		return lease, 0, nil
	}
	if r.o.Owner != "" && tries != 1 {
		return nil, 0, invalid("a fixed Owner needs a single attempt: use Try, or set Tries to 1")
	}
	if !ownerPerAttempt && r.o.Owner == "" {
		r = r.with(LockOptions{Owner: store.NewOwner()})
	}
	t := terms{r.name, r.o.Purpose, life, r.o.Require, r.o.Barge, want, 0}
	if c.waiter != nil && tries == 0 && r.o.Owner == "" {
		return c.queueUp(ctx, r, t, bound, began)
	}
	lease, err := c.poll(ctx, r, t, tries, bound, began)
	return lease, Acquired, err
}

// poll asks again and again, with pauses.
func (c *queues) poll(ctx context.Context, r *recipe, t terms, tries int, bound bool, began clock.Instant) (*Lease, error) {
	delay := r.delay()
	var last error            // why the lock was not granted so far,
	var at clock.Instant      // as was heard then
	var trouble clock.Instant // since when the store gave no answer at all
	var told cause
	for try := 1; ; try++ {
		if ctx.Err() != nil {
			return nil, gaveUp(ctx, c.refreshHolder(ctx, r.name, t.life.TTL, last, at))
		}
		lease, err := c.attempt(ctx, r, t, bound, nil)
		if err == nil {
			return lease, nil
		}
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil, gaveUp(ctx, both(last, err))
		}
		last, at = err, c.clock.Now()
		busy, retry := canWait(err)
		switch now := at; {
		case !retry:
			return nil, err
		case busy != nil || opens(err):
			trouble = 0
		case trouble == 0:
			trouble = now
		case now.Sub(trouble) > t.life.TTL:
			return nil, err
		}
		if tries > 0 && try >= tries {
			return nil, err
		}
		r.seeWaiting(ctx, began, err, &told)
		clock.Sleep(ctx, untilFree(delay(try), busy))
	}
}

// queueUp asks once, and waits in the queue when that does not give the lock; or at
// once, behind those of this client that already do.
func (c *queues) queueUp(ctx context.Context, r *recipe, t terms, bound bool, began clock.Instant) (*Lease, EventKind, error) {
	if ctx.Err() != nil {
		return nil, 0, gaveUp(ctx, nil)
	}
	if t.several() {
		return c.askOrQueue(ctx, r, t, bound, began)
	}
	now := c.lock()
	q := c.queueForLocked(t)
	if !q.triesFirstLocked(now) {
		return q.joinUnlock(ctx, r, bound, began, waitq.Event[*waiter]{Kind: waitq.Join}, now)
	}
	c.mu.Unlock()
	lease, now, err := c.askFirst(ctx, r, bound, q)
	if err == nil {
		return lease, Acquired, nil
	}
	if over := waitOver(ctx, err); over != nil {
		q.stepLocked(waitq.Event[*waiter]{Kind: waitq.TryFailed}, now)
		c.mu.Unlock()
		return nil, 0, over
	}
	q.reason, q.reasonAt = err, now
	return q.joinUnlock(ctx, r, bound, began, waitq.Event[*waiter]{Kind: waitq.TryRefused, Why: classOf(err)}, now)
}

// askOrQueue is queueUp for a lock that several can hold at once. Goroutines ask the
// store side by side, and each waits at a place of its own: one that shared the place of
// another would get it only after that one, behind those of other processes that came
// later.
func (c *queues) askOrQueue(ctx context.Context, r *recipe, t terms, bound bool, began clock.Instant) (*Lease, EventKind, error) {
	lease, err := c.attempt(ctx, r, t, bound, nil)
	if err == nil {
		return lease, Acquired, nil
	}
	if over := waitOver(ctx, err); over != nil {
		return nil, 0, over
	}
	now := c.lock()
	q := c.ownQueueLocked(t)
	q.reason, q.reasonAt = err, now
	return q.joinUnlock(ctx, r, bound, began, waitq.Event[*waiter]{Kind: waitq.Join}, now)
}

// waitOver returns the error with which a wait ends after an attempt that failed with
// err, or nil if waiting may help.
func waitOver(ctx context.Context, err error) error {
	switch _, retry := canWait(err); {
	case ctx.Err() != nil && (retry || errors.Is(err, ctx.Err())):
		return gaveUp(ctx, err)
	case ctx.Err() != nil || !retry:
		return err
	}
	return nil
}

// joinUnlock waits in q after the event by which it comes to that. The client's mutex
// is held, and joinUnlock unlocks it.
func (q *queue) joinUnlock(ctx context.Context, r *recipe, bound bool, began clock.Instant, e waitq.Event[*waiter], now clock.Instant) (*Lease, EventKind, error) {
	w := q.newWaiter(r, ctx, bound)
	p := w.joinLocked(e, now)
	q.c.mu.Unlock()
	return w.get(p, began)
}

// askFirst makes the attempt that all others of q wait for. If it fails, askFirst
// returns with the client's mutex held and the time.
func (c *queues) askFirst(ctx context.Context, r *recipe, bound bool, q *queue) (lease *Lease, now clock.Instant, err error) {
	returned := false
	defer func() {
		if !returned { // a function of the user's failed: the next may ask
			c.mu.Lock()
			q.stepLocked(waitq.Event[*waiter]{Kind: waitq.TryFailed}, 0)
			c.mu.Unlock()
		}
	}()
	if lease, err = c.attempt(ctx, r, q.terms, bound, q); err != nil {
		now = c.lock()
	}
	returned = true
	return lease, now, err
}

// untilFree cuts a pause short to when the holder's lease ends, plus a little
// so that the store has really dropped it.
func untilFree(d time.Duration, busy *BusyError) time.Duration {
	if busy != nil && busy.ExpiresIn > 0 {
		return min(d, busy.ExpiresIn+time.Millisecond)
	}
	return max(d, time.Millisecond)
}
