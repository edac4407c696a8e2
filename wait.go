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
// the answer is one that waiting cannot change. Goroutines of the package wait
// here and in place.go, and nowhere else. With bound, what is derived from the
// lease's context ends with ctx.
func (l *Lock) wait(ctx context.Context, tries int, bound bool) (*Lease, error) {
	mustHave(ctx)
	began := l.c.started()
	lease, how, err := l.get(ctx, tries, bound, began)
	returned := false
	defer func() {
		if !returned && lease != nil { // the Observer failed
			lease.discard()
		}
	}()
	l.seeOutcome(ctx, began, lease, how, err)
	returned = true
	return lease, err
}

// mustHave panics if ctx is nil, as the functions of package context do: a
// program that passes none has to be changed, and finds out at the first call.
func mustHave(ctx context.Context) {
	if ctx == nil {
		panic("leasehold: nil Context")
	}
}

// get is wait, and says how the lease was obtained: 0 by re-entry.
func (l *Lock) get(ctx context.Context, tries int, bound bool, began clock.Instant) (*Lease, EventKind, error) {
	if err := store.CheckName(l.name); err != nil {
		return nil, 0, err
	}
	life, err := l.o.life()
	if err != nil {
		return nil, 0, err
	}
	caps := l.c.store.Caps()
	if err := caps.CheckTTL(life.TTL); err != nil {
		return nil, 0, err
	}
	if l.o.Require > caps.Class {
		return nil, 0, fmt.Errorf("%w: lock %q requires %v, and this store (%s, nodes: %d) gives %v at most", ErrUnsupported, l.name, l.o.Require, caps.Engine, caps.Nodes, caps.Class)
	}
	want, err := l.take.check(l.name, l.o.Weight, caps)
	if err != nil {
		return nil, 0, err
	}
	if outer, ok := ctx.Value(leaseKey{l.c, l.name}).(*Lease); ok {
		if err := want.reenters(outer.h.req, l.o.Require); err != nil {
			return nil, 0, err
		}
		lease, err := outer.reenter(ctx, bound)
		return lease, 0, err
	}
	if l.o.Owner != "" && tries != 1 {
		return nil, 0, invalid("a fixed Owner goes with one attempt: use Try, or set Tries to 1")
	}
	if !ownerPerAttempt && l.o.Owner == "" {
		l = l.With(LockOptions{Owner: store.NewOwner()})
	}
	t := terms{l.name, l.o.Purpose, life, l.o.Require, l.o.Barge, want, 0}
	if l.c.waiter != nil && tries == 0 && l.o.Owner == "" {
		return l.queueUp(ctx, t, bound, began)
	}
	lease, err := l.poll(ctx, t, tries, bound, began)
	return lease, Acquired, err
}

// poll asks again and again, with pauses.
func (l *Lock) poll(ctx context.Context, t terms, tries int, bound bool, began clock.Instant) (*Lease, error) {
	delay := l.delay()
	var last error            // why the lock was not granted so far,
	var at clock.Instant      // as was heard then
	var trouble clock.Instant // since when the store gave no answer at all
	var told cause
	for try := 1; ; try++ {
		if ctx.Err() != nil {
			return nil, gaveUp(ctx, l.refreshHolder(ctx, last, at, t.life.TTL))
		}
		lease, err := l.attempt(ctx, t, bound, nil)
		if err == nil {
			return lease, nil
		}
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return nil, gaveUp(ctx, both(last, err))
		}
		last, at = err, l.c.clock.Now()
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
		l.seeWaiting(ctx, began, err, &told)
		pause(ctx, untilFree(delay(try), busy))
	}
}

// queueUp asks once, and waits in the queue when that does not give the lock; or at
// once, behind those of this client that already do.
func (l *Lock) queueUp(ctx context.Context, t terms, bound bool, began clock.Instant) (*Lease, EventKind, error) {
	if ctx.Err() != nil {
		return nil, 0, gaveUp(ctx, nil)
	}
	if t.several() {
		return l.askOrQueue(ctx, t, bound, began)
	}
	now := l.c.lock()
	q := l.c.queueForLocked(t)
	if !q.triesFirstLocked(now) {
		return l.joinUnlock(ctx, q, bound, began, waitq.Event[*waiter]{Kind: waitq.Join}, now)
	}
	l.c.mu.Unlock()
	lease, now, err := l.askFirst(ctx, bound, q)
	if err == nil {
		return lease, Acquired, nil
	}
	if over := waitOver(ctx, err); over != nil {
		q.stepLocked(waitq.Event[*waiter]{Kind: waitq.TryFailed}, now)
		l.c.mu.Unlock()
		return nil, 0, over
	}
	q.reason, q.reasonAt = err, now
	return l.joinUnlock(ctx, q, bound, began, waitq.Event[*waiter]{Kind: waitq.TryRefused, Why: classOf(err)}, now)
}

// askOrQueue is queueUp for a lock that several can hold at once. Goroutines ask the
// store side by side, and each waits at a place of its own: one that shared the place of
// another would get it only after that one, behind those of other processes that came
// later.
func (l *Lock) askOrQueue(ctx context.Context, t terms, bound bool, began clock.Instant) (*Lease, EventKind, error) {
	lease, err := l.attempt(ctx, t, bound, nil)
	if err == nil {
		return lease, Acquired, nil
	}
	if over := waitOver(ctx, err); over != nil {
		return nil, 0, over
	}
	now := l.c.lock()
	q := l.c.ownQueueLocked(t)
	q.reason, q.reasonAt = err, now
	return l.joinUnlock(ctx, q, bound, began, waitq.Event[*waiter]{Kind: waitq.Join}, now)
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
func (l *Lock) joinUnlock(ctx context.Context, q *queue, bound bool, began clock.Instant, e waitq.Event[*waiter], now clock.Instant) (*Lease, EventKind, error) {
	w := q.newWaiter(l, ctx, bound)
	p := w.joinLocked(e, now)
	l.c.mu.Unlock()
	return w.get(p, began)
}

// askFirst makes the attempt that all others of q wait for. If it fails, askFirst
// returns with the client's mutex held and the time.
func (l *Lock) askFirst(ctx context.Context, bound bool, q *queue) (lease *Lease, now clock.Instant, err error) {
	returned := false
	defer func() {
		if !returned { // a function of the user's failed: the next may ask
			l.c.mu.Lock()
			q.stepLocked(waitq.Event[*waiter]{Kind: waitq.TryFailed}, 0)
			l.c.mu.Unlock()
		}
	}()
	if lease, err = l.attempt(ctx, q.terms, bound, q); err != nil {
		now = l.c.lock()
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

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
