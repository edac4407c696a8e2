package leasehold

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/store"
)

// place is a place in the store's line. Its grant goes to the goroutine that is then
// first in the queue.
type place struct {
	ctx      context.Context
	cancel   context.CancelFunc
	since    time.Time    // its rank
	busy     bool         // that the lock was busy
	reserved *reservation // the place was taken with a release

	// Where a goroutine stands on behalf of the queue:
	gone chan struct{} // closed when nothing is left of the place
	// Where one of the queue stands by itself, and only its own wait ends the place:
	alone    *waiter
	patience *time.Timer // with a store that gives no answer; seldom needed
}

// waitForQueue waits in the store's line for as long as anybody is in the queue. The caller
// has set asking.
func (q *queue) waitForQueue() {
	q.c.contain(func() {
		for {
			p := q.nextPlace()
			if p == nil || q.waitAtAndEnd(p) {
				return // the queue is somebody else's business
			}
		}
	}, q.failed)
}

// waitAtAndEnd is waitAt, and gives up p.
func (q *queue) waitAtAndEnd(p *place) (given bool) {
	defer close(p.gone)
	defer p.cancel()
	return q.waitAt(p)
}

// errFailed ends the waits of a queue when a function of the user's has ended the
// goroutine that stood in line for it.
var errFailed = errors.New("a function given to the client panicked while the lock was waited for: see the log")

// failed ends all waits of the queue.
func (q *queue) failed() {
	rn := &q.c.renewer
	rn.mu.Lock()
	defer rn.mu.Unlock()
	q.asking, q.place = false, nil
	q.refuseAllLocked(errFailed)
	q.askIfNeededLocked()
}

// nextPlace returns the next place to wait at, or nil if the queue is empty.
func (q *queue) nextPlace() *place {
	rn := &q.c.renewer
	rn.mu.Lock()
	defer rn.mu.Unlock()
	w := q.foremostLocked()
	if w == nil {
		q.asking, q.place = false, nil
		q.askIfNeededLocked()
		return nil
	}
	p := q.newPlaceLocked(context.WithoutCancel(w.ctx))
	p.gone = make(chan struct{})
	return p
}

// newPlaceLocked makes a place, which ends with ctx. It has the rank of those before it
// that were given up while somebody waited. The renewer's mutex is held.
func (q *queue) newPlaceLocked(ctx context.Context) *place {
	p := &place{reserved: q.takeReservationLocked()}
	switch {
	case p.reserved != nil:
		q.since, p.busy = p.reserved.since, true
		q.c.renewer.contentions.of(q.name).rejoined()
	case q.since.IsZero() || !placeKept:
		q.since = time.Now()
	}
	p.since = q.since
	p.ctx, p.cancel = context.WithCancel(ctx)
	q.place = p
	return p
}

// waitAt has w stand at p, for itself and for all that come to wait behind it, and
// says whether it has to go on waiting. If not it has its answer, or its context
// or patience has ended. A store that gives no answer does not cost it the place
// before that: it would lose its turn to those who came later.
func (w *waiter) waitAt(p *place) (waits bool) {
	q := w.q
	rn := &q.c.renewer
	defer p.end()
	over := false
	defer func() {
		if !over { // a function of the user's failed: w is about to leave
			rn.mu.Lock()
			q.asking, q.place = false, nil
			rn.mu.Unlock()
		}
	}()
	if q.waitAt(p) {
		over = true
		return false // if the lock was not given to w, its context has ended
	}
	now := rn.lock()
	defer rn.mu.Unlock()
	over = true
	q.asking, q.place = false, nil
	left, trouble := w.patienceLocked(now)
	waits = !w.done && w.ctx.Err() == nil && (!trouble || left >= 0)
	if waits || w.done { // or else when it has left: nobody has to stand there for it
		q.askIfNeededLocked()
	}
	return waits
}

// watchPatienceLocked ends the place when the patience of the one waiter that stands there does. The
// renewer's mutex is held.
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
	rn := &q.c.renewer
	q.c.contain(func() {
		now := rn.lock()
		defer rn.mu.Unlock()
		if q.place == p {
			p.watchPatienceLocked(now)
		}
	}, p.cancel)
}

// end gives up what p needs, now that it is nobody's place.
func (p *place) end() {
	p.cancel()
	if p.patience != nil {
		p.patience.Stop()
	}
}

// waitAt waits until the lock was granted and given to somebody, or nobody wants
// it any more, or everybody was told that waiting is of no use.
func (q *queue) waitAt(p *place) (given bool) {
	rn := &q.c.renewer
	for try := 1; p.ctx.Err() == nil || p.reserved != nil; try++ {
		rn.mu.Lock()
		n := q.lengthLocked()
		rn.mu.Unlock()
		req, start := q.ask(p, n)
		grant, err := q.c.waiter.Wait(p.ctx, req, func(reason error) {
			// The goroutine may be the store's.
			q.c.contain(func() {
				now := rn.lock()
				defer rn.mu.Unlock()
				if q.place == p {
					p.busy = true
					q.setReasonLocked(reason, now)
				}
			}, p.cancel)
		})
		if err == nil {
			if given, err = q.give(p, req.Lease, grant, start); err == nil {
				return given
			}
		} else if p.ctx.Err() != nil {
			return false
		}
		now := rn.lock()
		if _, retry := canWait(err); !retry {
			q.refuseAllLocked(err)
			rn.mu.Unlock()
			return false
		}
		q.setReasonLocked(err, now)
		rn.mu.Unlock()
		pause(p.ctx, q.c.delay(try))
	}
	return false
}

// ask is the request for p, and when it was made: before the first byte leaves.
func (q *queue) ask(p *place, waiters int) (store.WaitRequest, clock.Instant) {
	if r := p.reserved; r != nil {
		p.reserved = nil
		return r.req, r.start
	}
	r := q.request(waiters)
	r.Owner = store.NewOwnerAt(p.since)
	return r, q.c.renewer.now()
}

// give makes the first in the queue the holder of what was granted, or gives it
// back if there is none.
func (q *queue) give(p *place, req store.Lease, grant store.Grant, start clock.Instant) (given bool, err error) {
	if grant.Owner != "" {
		req.Owner = grant.Owner
	}
	settled := false
	defer func() {
		if !settled { // the clock failed
			q.c.drop(p.ctx, store.ReleaseRequest{Lease: req})
		}
	}()
	rn := &q.c.renewer
	now := rn.lock()
	settled = true
	if !grantFromSince {
		start = now
	} else {
		start = min(start.Add(grant.Since), now)
	}
	h := q.c.newHold(req, grant, leasefsm.New(q.life).Step(leasefsm.Granted, start, now))
	if !h.fsm.Live() {
		rn.mu.Unlock()
		return false, h.late(p.ctx, now.Sub(start))
	}
	w := q.foremostLocked()
	if w == nil {
		q.since = time.Time{}
		rn.mu.Unlock()
		if unwantedReleased {
			if err := h.release(p.ctx, false); retries(err) {
				h.logUnknown(err)
			}
		}
		return false, nil
	}
	q.removeLocked(w)
	rn.contentions.of(q.name).busy = p.busy
	how := Acquired
	if p.busy {
		how = Handed
	}
	h.home = q
	w.deliverLocked(answer{lease: rn.startLocked(h, start, now, w.l, w.ctx, w.bound), how: how})
	q.attachLocked(h, now)
	rn.mu.Unlock()
	return true, nil
}
