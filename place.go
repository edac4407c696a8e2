package leasehold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
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

// asker asks the store for a queue, and gives what it is granted to the first waiter.
type asker struct{ *queue }

// waitInStore waits in the store's queue for as long as anybody is in the queue.
func (q asker) waitInStore() {
	q.c.guard.Run(func() {
		for {
			p := q.nextPlace()
			if p == nil || q.waitAtAndEnd(p) {
				return // another goroutine asks for the queue now, or none has to
			}
		}
	}, q.failed)
}

// waitAtAndEnd waits at p, and then gives p up.
func (q asker) waitAtAndEnd(p *place) (given bool) {
	defer close(p.gone)
	defer p.cancel()
	return q.waitAt(p)
}

// errFailed ends the waits of a queue when a function of the user's has ended the
// goroutine that waited in the store for it.
var errFailed = errors.New("a function given to the client panicked while the lock was waited for: see the log")

// failed ends all waits of the queue.
func (q asker) failed() {
	q.c.mutex.Lock()
	defer q.c.mutex.Unlock()
	q.refuseAllLocked(errFailed)
	q.stepLocked(waitq.Event[*waiter]{Kind: waitq.PlaceOver}, 0)
}

// nextPlace returns the next place to wait at, or nil if the queue is empty.
func (q asker) nextPlace() *place {
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
	if (asker{q}).waitAt(p) {
		over = true
		return false // if the lock was not given to w, its context has ended
	}
	now := q.c.lockQueues()
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
	q.c.guard.Run(func() {
		now := q.c.lockQueues()
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

// waitAt waits until the lock was granted and given to a waiter, no waiter is left, or
// all waiters have the error that waiting cannot mend.
func (q asker) waitAt(p *place) (given bool) {
	for try := 1; p.ctx.Err() == nil || p.reserved != nil; try++ {
		q.c.mutex.Lock()
		trace := q.traceLocked()
		q.c.mutex.Unlock()
		req, start := q.ask(p, trace)
		grant, err := q.c.store.Wait(p.ctx, req, func(reason error) {
			// The goroutine may be the store's.
			q.c.guard.Run(func() {
				now := q.c.lockQueues()
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
			err = fmt.Errorf("wait for %q: somebody has removed this waiter from the queue: %w", q.name, err)
		}
		now := q.c.lockQueues()
		if _, retry := canWait(err); !retry {
			q.refuseAllLocked(err)
			q.c.mutex.Unlock()
			return false
		}
		q.setReasonLocked(err, false, now)
		q.c.mutex.Unlock()
		clock.Sleep(p.ctx, q.c.delay(try))
	}
	return false
}

// ask returns the request for p, and when it was made: before the first byte leaves.
func (q asker) ask(p *place, trace string) (store.WaitRequest, clock.Instant) {
	if r := p.reserved; r != nil {
		p.reserved = nil
		return r.req, r.start
	}
	r := q.request(trace)
	r.Owner = ownerAt(p.rank)
	return r, q.c.clock.Now()
}

// give makes the first waiter in the queue the holder of the grant, or releases the grant
// if there is no waiter.
func (q asker) give(p *place, grant store.Grant, start clock.Instant) (given bool, err error) {
	settled := false
	defer func() {
		if !settled { // the clock failed
			q.c.drop(p.ctx, store.ReleaseRequest{Lease: grant.Lease})
		}
	}()
	now := q.c.lockQueues()
	settled = true
	if !grantFromSince {
		start = now
	} else {
		start = min(start.Add(grant.Since), now)
	}
	l := newLease(&q.c.holds, grant, leasefsm.New(q.life).Step(leasefsm.Granted, start, now))
	h := l.h
	if !h.fsm.Live() {
		q.c.mutex.Unlock()
		return false, h.late(p.ctx, now.Sub(start))
	}
	a, ok := q.stepLocked(waitq.Event[*waiter]{Kind: waitq.Granted}, now)
	if a.Kind != waitq.Give {
		q.c.mutex.Unlock()
		if ok {
			if err := h.release(p.ctx, false); retries(err) {
				q.c.logUnknown(q.name, err)
			}
		}
		return false, nil
	}
	how := Acquired
	if q.m.Contended() {
		how = Handed
	}
	w := a.Waiter.Of
	if !q.several() {
		h.q = q.queue
	}
	q.c.mu.Lock()
	h.startLocked(&l.share, now, w.r, w.ctx, w.bound)
	q.c.mu.Unlock()
	w.endLocked(answer{lease: l, how: how})
	q.c.mutex.Unlock()
	return true, nil
}
