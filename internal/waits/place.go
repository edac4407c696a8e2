package waits

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/holds"
	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/store"
)

// place is a place in the store's queue. Its grant goes to the goroutine that is then
// first in the queue of this process.
type place struct {
	ctx      context.Context
	cancel   context.CancelFunc
	rank     uint64
	reserved *reservation // the place was taken with a release

	// Where a goroutine waits on behalf of the queue:
	gone chan struct{} // closed when nothing is left of the place
	// Where one of the queue waits by itself, and only its own wait ends the place:
	alone    *waiter
	patience *time.Timer // with a store that gives no answer; seldom needed
}

// begin has the place end with ctx.
func (p *place) begin(ctx context.Context) { p.ctx, p.cancel = context.WithCancel(ctx) }

// waitInStore waits in the store's queue for as long as anybody is in the queue.
func (q *queue) waitInStore() {
	q.c.holds.Guard.Run(func() {
		for {
			p := q.nextPlace()
			if p == nil || q.waitAtAndEnd(p) {
				return // another goroutine asks for the queue now, or none has to
			}
		}
	}, q.failed)
}

// waitAtAndEnd waits at p, and then gives p up.
func (q *queue) waitAtAndEnd(p *place) (given bool) {
	defer close(p.gone)
	defer p.cancel()
	return q.askAt(p)
}

// errFailed ends the waits of a queue when a function of the user's has ended the
// goroutine that waited in the store for it.
var errFailed = errors.New("a function given to the client panicked while the lock was waited for: see the log")

// failed ends all waits of the queue.
func (q *queue) failed() {
	q.c.mutex.Lock()
	defer q.c.mutex.Unlock()
	q.refuseAllLocked(errFailed)
	q.stepLocked(waitq.Event[*waiter]{Kind: waitq.PlaceOver}, 0)
}

// nextPlace returns the next place to wait at, or nil if the queue is empty.
func (q *queue) nextPlace() *place {
	q.c.mutex.Lock()
	defer q.c.mutex.Unlock()
	p := q.newPlaceLocked(0)
	if p != nil {
		p.begin(context.WithoutCancel(q.m.Foremost().Of.ctx))
		p.gone = make(chan struct{})
	}
	return p
}

// waitAt has w wait at p, for itself and for all waiters behind it, and reports whether w
// has to go on waiting. If not, w has its answer, or its context or patience has ended.
// Until then w keeps the place even if the store gives no answer: otherwise it would lose
// its turn to later waiters.
func (w *waiter) waitAt(p *place) (waits bool) {
	q := w.q
	defer p.end()
	over := false
	defer func() {
		if !over { // a function of the user's failed: w is about to leave
			q.c.mutex.Lock()
			w.leavePlaceLocked(false)
			q.c.mutex.Unlock()
		}
	}()
	if q.askAt(p) {
		over = true
		return false // if the lock was not given to w, its context has ended
	}
	now := q.c.lock()
	defer q.c.mutex.Unlock()
	over = true
	left, trouble := w.patienceLocked(now)
	waits = !w.done && w.ctx.Err() == nil && (!trouble || left >= 0)
	w.leavePlaceLocked(waits)
	return waits
}

// leavePlaceLocked gives up the place at which w has waited. If w does not wait
// any longer, the queue does not ask the store for it again.
func (w *waiter) leavePlaceLocked(waits bool) {
	if !waits && !w.done {
		w.q.m.Step(waitq.Event[*waiter]{Kind: waitq.Ended, Waiter: &w.Waiter}, 0, nil)
	}
	w.q.stepLocked(waitq.Event[*waiter]{Kind: waitq.PlaceOver}, 0)
}

// watchPatienceLocked ends the place when the patience of the one waiter that
// waits there does.
func (p *place) watchPatienceLocked(now clock.Instant) {
	if p.alone == nil {
		return
	}
	left, trouble := p.alone.patienceLocked(now)
	switch {
	case trouble && left < 0:
		p.cancel()
	case trouble && p.patience == nil:
		p.patience = time.AfterFunc(left+time.Millisecond, p.checkPatience)
	case trouble:
		p.patience.Reset(left + time.Millisecond)
	case p.patience != nil:
		p.patience.Stop()
	}
}

// checkPatience has the place end if it is time.
func (p *place) checkPatience() {
	q := p.alone.q
	q.c.holds.Guard.Run(func() {
		now := q.c.lock()
		defer q.c.mutex.Unlock()
		if q.place == p {
			p.watchPatienceLocked(now)
		}
	}, p.cancel)
}

// end frees what p uses, once no goroutine waits at it.
func (p *place) end() {
	p.cancel()
	if p.patience != nil {
		p.patience.Stop()
	}
}

// askAt asks the store until the lock was granted and given to a waiter, no waiter is left, or
// all waiters have the error that waiting cannot mend.
func (q *queue) askAt(p *place) (given bool) {
	for try := 1; p.ctx.Err() == nil || p.reserved != nil; try++ {
		q.c.mutex.Lock()
		trace := q.traceLocked()
		q.c.mutex.Unlock()
		req, start := q.requestAt(p, trace)
		grant, err := q.c.holds.Store.Wait(p.ctx, req, func(reason error) {
			// The goroutine may be the store's.
			q.c.holds.Guard.Run(func() {
				now := q.c.lock()
				defer q.c.mutex.Unlock()
				if q.place == p {
					q.setReasonLocked(reason, true, now)
				}
			}, p.cancel)
		})
		if err == nil {
			if given, err = q.give(p, grant, start); err == nil {
				return given
			}
		} else if p.ctx.Err() != nil {
			return false
		} else if errors.Is(err, store.ErrNotHeld) {
			err = fmt.Errorf("wait for %q: somebody has removed this waiter from the queue: %w", q.Name, err)
		}
		now := q.c.lock()
		if _, retry := CanWait(err); !retry {
			q.refuseAllLocked(err)
			q.c.mutex.Unlock()
			return false
		}
		q.setReasonLocked(err, false, now)
		q.c.mutex.Unlock()
		clock.Sleep(p.ctx, q.c.holds.RetryDelay(try))
	}
	return false
}

// requestAt returns the request for p, and when it was made: before the first byte leaves.
func (q *queue) requestAt(p *place, trace string) (store.WaitRequest, clock.Instant) {
	if r := p.reserved; r != nil {
		p.reserved = nil
		return r.req, r.start
	}
	return q.request(p.rank, trace), q.c.holds.Clock.Now()
}

// give makes the first waiter in the queue the holder of the grant, or releases the grant
// if there is no waiter.
func (q *queue) give(p *place, grant store.Grant, start clock.Instant) (given bool, err error) {
	if start = start.Add(grant.Since); !grantFromSince {
		start = math.MaxInt64
	}
	l, now, err := q.c.holds.Take(p.ctx, grant, q.Life, start)
	if err != nil {
		return false, err
	}
	q.c.mutex.Lock()
	a, ok := q.stepLocked(waitq.Event[*waiter]{Kind: waitq.Granted}, now)
	if a.Kind != waitq.Give {
		q.c.mutex.Unlock()
		if ok {
			l.GiveBack(p.ctx)
		}
		return false, nil
	}
	defer q.c.mutex.Unlock()
	w := a.Waiter.Of
	held := holds.Terms{MinHold: w.by.MinHold, RetryDelay: w.by.RetryDelay}
	if !q.several() {
		held.By = q
	}
	l.Start(now, held, w.ctx, w.by.Bound)
	w.endLocked(answer{lease: l, handed: q.m.Contended()})
	return true, nil
}
