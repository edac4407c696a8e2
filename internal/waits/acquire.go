package waits

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/holds"
	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/store"
)

// lease returns what a client asks for, without an owner. The trace is that of the goroutine
// for which it asks.
func (c *Queues) lease(t *Terms, trace string) store.Lease {
	return store.Lease{Name: t.Name, Kind: t.Kind, Weight: t.Weight, Meta: c.Describe(t.Purpose, trace, !t.Unrenewed), TTL: t.Life.TTL, Require: t.Require}
}

// attempt asks the store for the lock once, for that owner, or for a fresh one if it is empty.
func (c *Queues) attempt(ctx context.Context, t *Terms, by *Caller, owner string) (*holds.Lease, error) {
	req := store.AcquireRequest{Lease: c.lease(t, by.Trace)}
	if req.Owner = store.NewOwner(); owner != "" {
		req.Owner, req.Attempt, req.Meta = owner, req.Owner, ""
	}
	start := c.holds.Clock.Now() // before the first byte leaves: validity counts from here
	grant, err := c.holds.Store.Acquire(ctx, req)
	if owner != "" && err != nil {
		if req.Meta = describedLease(err, owner); req.Meta != "" {
			grant, err = c.holds.Store.Acquire(ctx, req)
		}
	}
	if err != nil {
		return nil, err
	}
	l, now, err := c.holds.Take(ctx, grant, t.Life, start)
	if err != nil {
		return nil, err
	}
	l.Start(now, holds.Terms{MinHold: by.MinHold, RetryDelay: by.RetryDelay, Fixed: owner != ""}, ctx, by.Bound)
	return l, nil
}

// describedLease returns how the lease of a fixed owner is described, if err says that the owner
// holds the lock: some stores compare descriptions, and another process may have acquired the
// lease with one.
func describedLease(err error, owner string) string {
	busy, ok := errors.AsType[*store.BusyError](err)
	if !ok || busy.Holder.Owner != owner || busy.Holder.Waiting {
		return ""
	}
	h := busy.Holder
	h.Owner = ""
	if h == (store.Holder{}) {
		return ""
	}
	return h.Encode()
}

// Acquire asks for a lease until it is granted, ctx ends, or an error shows that waiting cannot
// help. It reports whether another goroutine or process handed the lock over. It asks the store once,
// and waits in the queue if the lock is not granted. If other goroutines of this client already wait, it
// joins them without asking.
func (c *Queues) Acquire(ctx context.Context, t Terms, by *Caller) (l *holds.Lease, handed bool, err error) {
	if !c.queued {
		l, err = c.Poll(ctx, t, by, 0, "")
		return l, false, err
	}
	if ctx.Err() != nil {
		return nil, false, GaveUp(ctx, nil)
	}
	if t.several() {
		return c.askOrQueue(ctx, t, by)
	}
	now := c.lock()
	q := c.queueLocked(t)
	var room [1]waitq.Action[*waiter]
	if asks := q.m.Step(waitq.Event[*waiter]{Kind: waitq.Arrive}, now, room[:0]); len(asks) == 0 {
		return q.joinUnlock(ctx, by, waitq.Event[*waiter]{Kind: waitq.Join}, now)
	}
	c.mutex.Unlock()
	if l, now, err = q.askFirst(ctx, by); err == nil {
		return l, false, nil
	}
	if over := waitOver(ctx, err); over != nil {
		q.stepLocked(waitq.Event[*waiter]{Kind: waitq.TryFailed}, now)
		c.mutex.Unlock()
		return nil, false, over
	}
	q.reason, q.reasonAt = err, now
	return q.joinUnlock(ctx, by, waitq.Event[*waiter]{Kind: waitq.TryRefused, Why: classOf(err)}, now)
}

// askFirst makes the attempt that all others of q wait for. If it fails, askFirst
// returns with the queues' mutex held and the time.
func (q *queue) askFirst(ctx context.Context, by *Caller) (l *holds.Lease, now clock.Instant, err error) {
	returned := false
	defer func() {
		if !returned { // a function of the user's failed: the next may ask
			q.c.mutex.Lock()
			q.stepLocked(waitq.Event[*waiter]{Kind: waitq.TryFailed}, 0)
			q.c.mutex.Unlock()
		}
	}()
	if l, err = q.c.attempt(ctx, &q.Terms, by, ""); err != nil {
		now = q.c.lock()
	} else {
		q.c.mutex.Lock()
		q.stepLocked(waitq.Event[*waiter]{Kind: waitq.TryGranted}, 0)
		q.c.mutex.Unlock()
	}
	returned = true
	return l, now, err
}

// askOrQueue is Acquire for a lock that several can hold at once. Goroutines ask the
// store side by side, and each waits at a place of its own: one that shared the place of
// another would get it only after that one, behind those of other processes that came
// later. Under contention a goroutine waits at once, and its place takes what is free.
func (c *Queues) askOrQueue(ctx context.Context, t Terms, by *Caller) (*holds.Lease, bool, error) {
	now := c.lock()
	var refused error
	if !c.contentions.Of(t.Name).Busy() {
		c.mutex.Unlock()
		l, err := c.attempt(ctx, &t, by, "")
		if err == nil {
			return l, false, nil
		}
		if over := waitOver(ctx, err); over != nil {
			return nil, false, over
		}
		now, refused = c.lock(), err
	}
	q := c.ownQueueLocked(t)
	q.reason, q.reasonAt = refused, now
	return q.joinUnlock(ctx, by, waitq.Event[*waiter]{Kind: waitq.Join}, now)
}

// joinUnlock joins q by the event e, and waits. The queues' mutex is held, and joinUnlock
// unlocks it.
func (q *queue) joinUnlock(ctx context.Context, by *Caller, e waitq.Event[*waiter], now clock.Instant) (*holds.Lease, bool, error) {
	w := q.newWaiter(ctx, by)
	p := w.joinLocked(e, now)
	q.c.mutex.Unlock()
	return w.get(p)
}

// Poll asks until the lock is granted, with pauses, and at most tries times unless tries is 0. It
// asks for that owner, or for fresh ones if it is empty. It gives up if the store has not answered
// at all for a TTL.
func (c *Queues) Poll(ctx context.Context, t Terms, by *Caller, tries int, owner string) (*holds.Lease, error) {
	var last error            // why the lock was not granted so far,
	var at clock.Instant      // and when the store said so
	var trouble clock.Instant // since when the store gave no answer at all
	var told cause
	for try := 1; ; try++ {
		if ctx.Err() != nil {
			return nil, GaveUp(ctx, c.refreshHolder(ctx, t.Name, t.Life.TTL, last, at))
		}
		lease, err := c.attempt(ctx, &t, by, owner)
		if err == nil {
			return lease, nil
		}
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil, GaveUp(ctx, Both(last, err))
		}
		last, at = err, c.holds.Clock.Now()
		busy, retry := CanWait(err)
		switch now := at; {
		case !retry:
			return nil, err
		case busy != nil || opens(err):
			trouble = 0
		case trouble == 0:
			trouble = now
		case now.Sub(trouble) > t.Life.TTL:
			return nil, err
		}
		if tries > 0 && try >= tries {
			return nil, err
		}
		by.tell(err, &told)
		clock.Sleep(ctx, UntilFree(by.RetryDelay(try), busy))
	}
}

// UntilFree returns how long to pause: d, or until the holder's lease ends if that is
// sooner. A millisecond is added so that the store has really dropped the lease.
func UntilFree(d time.Duration, busy *store.BusyError) time.Duration {
	if busy != nil && busy.ExpiresIn > 0 {
		return min(d, busy.ExpiresIn+time.Millisecond)
	}
	return max(d, time.Millisecond)
}
