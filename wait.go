package leasehold

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
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
	if outer, ok := ctx.Value(leaseKey{l.c, l.name}).(*Lease); ok {
		if got := outer.h.req.Require; l.o.Require > got {
			return nil, 0, fmt.Errorf("%w: lock %q requires %v, and the lease in the context was acquired with %v: require %[3]v where it is acquired", ErrUnsupported, l.name, l.o.Require, got)
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
	if l.c.waiter != nil && tries == 0 && l.o.Owner == "" {
		return l.queueUp(ctx, life, bound, began)
	}
	lease, err := l.poll(ctx, life, tries, bound, began)
	return lease, Acquired, err
}

// poll asks again and again, with pauses.
func (l *Lock) poll(ctx context.Context, life leasefsm.Config, tries int, bound bool, began clock.Instant) (*Lease, error) {
	delay := l.delay()
	var last error            // why the lock was not granted so far,
	var at clock.Instant      // as was heard then
	var trouble clock.Instant // since when the store gave no answer at all
	var told cause
	for try := 1; ; try++ {
		if ctx.Err() != nil {
			return nil, gaveUp(ctx, l.refreshHolder(ctx, last, at, life.TTL))
		}
		lease, err := l.attempt(ctx, life, bound, nil)
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
		case now.Sub(trouble) > life.TTL:
			return nil, err
		}
		if tries > 0 && try >= tries {
			return nil, err
		}
		l.seeWaiting(ctx, began, err, &told)
		pause(ctx, untilFree(delay(try), busy))
	}
}

// queueUp asks once, and stands in line when that does not give the lock; or
// behind those of this client that already do.
func (l *Lock) queueUp(ctx context.Context, life leasefsm.Config, bound bool, began clock.Instant) (*Lease, EventKind, error) {
	if ctx.Err() != nil {
		return nil, 0, gaveUp(ctx, nil)
	}
	rn := &l.c.renewer
	now := rn.lock()
	q, known := rn.queueForLocked(terms{l.name, l.o.Purpose, life, l.o.Require, l.o.Barge})
	c := rn.contentions.of(l.name)
	if c.asked(now); known || c.busy {
		w := q.joinLocked(l, ctx, bound, false)
		p := w.placeOrQueueLocked(now)
		rn.mu.Unlock()
		return w.get(p, began)
	}
	q.asking = true
	rn.mu.Unlock()
	lease, now, err := l.askFirst(ctx, life, bound, q)
	if err == nil {
		return lease, Acquired, nil
	}
	q.asking = false
	busy, retry := canWait(err)
	if ctx.Err() != nil || !retry {
		q.askIfNeededLocked()
		rn.mu.Unlock()
		if ctx.Err() != nil && (retry || errors.Is(err, ctx.Err())) {
			err = gaveUp(ctx, err)
		}
		return nil, 0, err
	}
	if busy != nil {
		c.busy = true
	}
	w := q.joinLocked(l, ctx, bound, true)
	if busy != nil { // waiters are told when their position is known too
		q.reason, q.reasonAt = err, now
	} else {
		q.setReasonLocked(err, now)
	}
	p := w.placeOrQueueLocked(now)
	rn.mu.Unlock()
	return w.get(p, began)
}

// askFirst makes the attempt that all others of q wait for. If it fails, askFirst
// returns with the renewer's mutex held and the time.
func (l *Lock) askFirst(ctx context.Context, life leasefsm.Config, bound bool, q *queue) (lease *Lease, now clock.Instant, err error) {
	rn := &l.c.renewer
	returned := false
	defer func() {
		if !returned { // a function of the user's failed: the next may ask
			rn.mu.Lock()
			q.asking = false
			q.askIfNeededLocked()
			rn.mu.Unlock()
		}
	}()
	if lease, err = l.attempt(ctx, life, bound, q); err != nil {
		now = rn.lock()
	}
	returned = true
	return lease, now, err
}

// get waits at p, or else in the queue.
func (w *waiter) get(p *place, began clock.Instant) (lease *Lease, how EventKind, err error) {
	returned := false
	defer func() {
		if !returned {
			w.abandon()
		}
	}()
	if p != nil && !w.waitAt(p) {
		lease, how, err = w.leave()
	} else {
		lease, how, err = w.wait(began)
	}
	returned = true
	return lease, how, err
}

// wait waits in the queue, and tells of the reasons.
func (w *waiter) wait(began clock.Instant) (*Lease, EventKind, error) {
	rn := &w.q.c.renewer
	var patience *time.Timer // with a store that gives no answer; seldom needed
	var over <-chan time.Time
	var told cause
	for {
		select {
		case <-w.ctx.Done():
			return w.leave()
		case a := <-w.answer:
			if a.lease != nil || a.err != nil {
				return a.lease, a.how, a.err
			}
		case <-over:
		}
		now := rn.lock()
		if w.done {
			rn.mu.Unlock()
			continue
		}
		var why error
		if w.l.listens() {
			why = w.reasonLocked(now)
		}
		left, trouble := w.patienceLocked(now)
		rn.mu.Unlock()
		switch {
		case trouble && left < 0:
			return w.leave()
		case trouble && patience == nil:
			patience = time.NewTimer(left + time.Millisecond)
			defer patience.Stop()
			over = patience.C
		case trouble:
			patience.Reset(left + time.Millisecond)
		case patience != nil:
			patience.Stop()
		}
		if why != nil {
			w.tellWaiting(began, why, &told)
		}
	}
}

// tellWaiting calls the user's functions. If the context ends while they block,
// w does not stand in anybody's way.
func (w *waiter) tellWaiting(began clock.Instant, why error, told *cause) {
	stop := context.AfterFunc(w.ctx, w.stepAside)
	defer stop()
	w.l.seeWaiting(w.ctx, began, why, told)
}

// canWait says whether the lock may be had later: because its holder will be
// gone (busy is then set), or because nodes may come back.
func canWait(err error) (busy *BusyError, retry bool) {
	if errors.As(err, &busy) {
		return busy, true
	}
	var quorum *QuorumError
	if errors.As(err, &quorum) {
		return nil, quorum.Transient()
	}
	return nil, errors.Is(err, ErrLost) // granted, but too late to be of use
}

// opens says whether the lock cannot be had because nodes are in quarantine,
// which has an end.
func opens(err error) bool {
	var quorum *QuorumError
	if !errors.As(err, &quorum) {
		return false
	}
	_, ok := quorum.OpensIn()
	return ok
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

// gaveUp is the error of a wait that its context ended. It matches the
// context's error and whatever the last answer matched.
func gaveUp(ctx context.Context, last error) error {
	ended := ctx.Err()
	if cause := context.Cause(ctx); cause != ended {
		ended = both(ended, cause)
	}
	var busy *BusyError
	if errors.As(last, &busy) {
		e := *busy
		e.Err = both(ended, busy.Err)
		return &e
	}
	switch {
	case last != nil && errors.Is(last, ended):
		return last
	}
	return both(ended, last)
}

// both is errors.Join in one line.
func both(a, b error) error {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return fmt.Errorf("%w: %w", a, b)
}
