package leasehold

import (
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/waitq"
)

// queueUp asks the store once, and waits in the queue if the lock is not granted. If other
// goroutines of this client already wait, it joins them without asking.
func (c *queues) queueUp(ctx context.Context, r *recipe, t terms, bound bool, began clock.Instant) (*Lease, EventKind, error) {
	if ctx.Err() != nil {
		return nil, 0, gaveUp(ctx, nil)
	}
	if t.several() {
		return c.askOrQueue(ctx, r, t, bound, began)
	}
	now := c.lockQueues()
	q := c.queueForLocked(t)
	if !q.triesFirstLocked(now) {
		return q.joinUnlock(ctx, r, bound, began, waitq.Event[*waiter]{Kind: waitq.Join}, now)
	}
	c.mutex.Unlock()
	lease, now, err := c.askFirst(ctx, r, bound, q)
	if err == nil {
		return lease, Acquired, nil
	}
	if over := waitOver(ctx, err); over != nil {
		q.stepLocked(waitq.Event[*waiter]{Kind: waitq.TryFailed}, now)
		c.mutex.Unlock()
		return nil, 0, over
	}
	q.reason, q.reasonAt = err, now
	return q.joinUnlock(ctx, r, bound, began, waitq.Event[*waiter]{Kind: waitq.TryRefused, Why: classOf(err)}, now)
}

// askOrQueue is queueUp for a lock that several can hold at once. Goroutines ask the
// store side by side, and each waits at a place of its own: one that shared the place of
// another would get it only after that one, behind those of other processes that came
// later. Under contention a goroutine waits at once, and its place takes what is free.
func (c *queues) askOrQueue(ctx context.Context, r *recipe, t terms, bound bool, began clock.Instant) (*Lease, EventKind, error) {
	now := c.lockQueues()
	var refused error
	if !c.contentions.Of(t.name).Busy() {
		c.mutex.Unlock()
		lease, err := c.attempt(ctx, r, t, bound, nil)
		if err == nil {
			return lease, Acquired, nil
		}
		if over := waitOver(ctx, err); over != nil {
			return nil, 0, over
		}
		now, refused = c.lockQueues(), err
	}
	q := c.ownQueueLocked(t)
	q.reason, q.reasonAt = refused, now
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

// joinUnlock joins q by the event e, and waits. The queues' mutex is held, and joinUnlock
// unlocks it.
func (q *queue) joinUnlock(ctx context.Context, r *recipe, bound bool, began clock.Instant, e waitq.Event[*waiter], now clock.Instant) (*Lease, EventKind, error) {
	w := q.newWaiter(r, ctx, bound)
	p := w.joinLocked(e, now)
	q.c.mutex.Unlock()
	return w.get(p, began)
}

// askFirst makes the attempt that all others of q wait for. If it fails, askFirst
// returns with the queues' mutex held and the time.
func (c *queues) askFirst(ctx context.Context, r *recipe, bound bool, q *queue) (lease *Lease, now clock.Instant, err error) {
	returned := false
	defer func() {
		if !returned { // a function of the user's failed: the next may ask
			c.mutex.Lock()
			q.stepLocked(waitq.Event[*waiter]{Kind: waitq.TryFailed}, 0)
			c.mutex.Unlock()
		}
	}()
	if lease, err = c.attempt(ctx, r, q.terms, bound, q); err != nil {
		now = c.lockQueues()
	} else {
		c.mutex.Lock()
		q.stepLocked(waitq.Event[*waiter]{Kind: waitq.TryGranted}, 0)
		c.mutex.Unlock()
	}
	returned = true
	return lease, now, err
}
