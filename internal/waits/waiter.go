package waits

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/holds"
	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/store"
)

// waiter is one goroutine in a queue.
type waiter struct {
	waitq.Waiter[*waiter]
	q        *queue
	by       Caller
	ctx      context.Context
	done     bool            // answered, and no longer in the queue
	answer   chan answer     // holds one
	news     <-chan struct{} // closed when there is a new reason to wait
	number   int             // in the queue's positions
	withdrew *withdrawal     // how it left the queue without an answer; nil: it did not
}

// withdrawal is how a waiter left its queue without an answer, and what it knew then.
type withdrawal struct {
	why       error         // why it was not granted the lock
	at        clock.Instant // when that was known
	rank      uint64        // of the queue's place in the store's queue; 0: it had none
	ahead     int           // waiters of the queue before it
	placeGone chan struct{} // closed when nothing is left of the place that it left; or nil
}

// answer ends a wait.
type answer struct {
	lease  *holds.Lease
	handed bool // by another goroutine or process
	err    error
}

// newWaiter returns a waiter that is in no queue yet.
func (q *queue) newWaiter(ctx context.Context, by *Caller) *waiter {
	w := &waiter{q: q, by: *by, ctx: ctx, answer: make(chan answer, 1)}
	w.Of, w.Listens = w, by.listens()
	return w
}

// joinLocked puts w into its queue by the event e, which is Join or TryRefused. It returns the place at which w waits in its own goroutine, or nil.
func (w *waiter) joinLocked(e waitq.Event[*waiter], now clock.Instant) *place {
	e.Waiter = &w.Waiter
	if w.Listens || w.q.m.Len() > 0 { // otherwise it will mostly wait at a place
		w.news = w.newsLocked()
	}
	w.q.positions.add(w, e.Kind == waitq.TryRefused)
	if a, _ := w.q.stepLocked(e, now); a.Kind != waitq.EnterYourself {
		if w.news == nil {
			w.news = w.newsLocked()
		}
		return nil
	}
	w.news = told // if it comes to wait without a place
	p := w.q.newPlaceLocked(now)
	p.begin(w.ctx)
	p.alone = w
	p.watchPatienceLocked(now)
	return p
}

// get waits at p, or else in the queue.
func (w *waiter) get(p *place) (lease *holds.Lease, handed bool, err error) {
	returned := false
	defer func() {
		if !returned {
			w.abandon()
		}
	}()
	if p != nil && !w.waitAt(p) {
		lease, handed, err = w.result()
	} else {
		lease, handed, err = w.wait()
	}
	returned = true
	return lease, handed, err
}

// result returns the answer of w, whose wait is over. Without one, its context or its patience has
// ended, and w leaves the queue.
func (w *waiter) result() (*holds.Lease, bool, error) {
	select {
	case a := <-w.answer:
		return a.lease, a.handed, a.err
	default:
		return w.withdraw()
	}
}

// wait waits in the queue, and reports the reasons.
func (w *waiter) wait() (*holds.Lease, bool, error) {
	var patience *time.Timer // with a store that gives no answer; seldom needed
	var over <-chan time.Time
	var told cause
	for {
		select {
		case a := <-w.answer:
			return a.lease, a.handed, a.err
		case <-w.ctx.Done():
			return w.withdraw()
		case <-w.news:
		case <-over:
		}
		now := w.q.c.lock()
		if w.done {
			w.q.c.mutex.Unlock()
			return w.result()
		}
		w.news = w.newsLocked()
		var why error
		if w.Listens {
			why = w.reasonLocked(now)
		}
		left, trouble := w.patienceLocked(now)
		w.q.c.mutex.Unlock()
		switch {
		case trouble && left < 0:
			return w.withdraw()
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
			w.tell(why, &told)
		}
	}
}

// newsLocked returns a channel that is closed when w has to read anew why it waits. A waiter that
// tells nobody the reason has to know only of trouble with the store, for its patience.
func (w *waiter) newsLocked() <-chan struct{} {
	if w.Listens {
		return w.q.listeners.waitLocked()
	}
	return w.q.all.waitLocked()
}

// tell calls the user's functions. If the context ends while they block,
// w leaves the queue at once.
func (w *waiter) tell(why error, told *cause) {
	stop := context.AfterFunc(w.ctx, w.stepAside)
	defer stop()
	w.by.tell(why, told)
}

// patienceLocked returns how long w goes on waiting for a store that gives it no
// answer, and whether there is such trouble.
func (w *waiter) patienceLocked(now clock.Instant) (left time.Duration, trouble bool) {
	return w.q.m.Patience(&w.Waiter, now)
}

// reasonLocked returns why w waits at now.
func (w *waiter) reasonLocked(now clock.Instant) error {
	q, ahead := w.q, w.q.positions.ahead(w)
	busy, ok := q.reason.(*store.BusyError)
	if !ok {
		return q.reason
	}
	e := *busy
	if e.ExpiresIn > 0 {
		e.ExpiresIn = max(e.ExpiresIn-now.Sub(q.reasonAt), 0)
	}
	if e.Position > 0 {
		e.Position += ahead
	}
	return &e
}

// endLocked ends the wait of w, which is no longer in the queue.
func (w *waiter) endLocked(a answer) {
	w.done = true
	w.q.positions.remove(w)
	w.answer <- a // the only one
}

// withdraw takes w, whose context or patience has ended, out of the queue. It returns the
// error for that, or the answer if that came first. The last waiter of a queue returns only
// when nothing is left of its place in the store's queue.
func (w *waiter) withdraw() (*holds.Lease, bool, error) {
	q := w.q
	now := q.c.lock()
	if w.done {
		q.c.mutex.Unlock()
		a := <-w.answer
		return a.lease, a.handed, a.err
	}
	w.withdrawLocked(now)
	q.c.mutex.Unlock()
	w.awaitPlace()
	if w.ctx.Err() == nil {
		return nil, false, w.withdrew.why
	}
	return nil, false, GaveUp(w.ctx, q.refresh.holder(w.ctx, q, w.withdrew))
}

// withdrawLocked takes w out of the queue, unless it is out of it already.
func (w *waiter) withdrawLocked(now clock.Instant) {
	if w.withdrew != nil {
		return
	}
	q := w.q
	w.withdrew = &withdrawal{why: w.reasonLocked(now), at: q.reasonAt, rank: q.m.Rank(), ahead: q.positions.ahead(w)}
	q.positions.remove(w)
	a, _ := q.stepLocked(waitq.Event[*waiter]{Kind: waitq.Leave, Waiter: &w.Waiter}, now)
	if a.Kind == waitq.GiveUp {
		p := q.place
		p.cancel()
		w.withdrew.placeGone = p.gone
	}
}

// awaitPlace waits until nothing is left of the place in the store's queue, if w was
// the last that wanted it.
func (w *waiter) awaitPlace() {
	if gone := w.withdrew.placeGone; gone != nil {
		<-gone
	}
}

// abandon does what withdraw does, for a waiter whose goroutine was ended by a function of the
// user's.
func (w *waiter) abandon() {
	w.q.c.mutex.Lock()
	if w.done {
		w.q.c.mutex.Unlock()
		if a := <-w.answer; a.lease != nil {
			a.lease.Discard()
		}
		return
	}
	w.withdrawLocked(0) // the time is for an error that nobody sees
	w.q.c.mutex.Unlock()
	w.awaitPlace()
}

// stepAside withdraws w when its context ends while a function of the user's keeps
// its goroutine from leaving.
func (w *waiter) stepAside() {
	w.q.c.holds.Guard.Run(func() {
		now := w.q.c.lock()
		defer w.q.c.mutex.Unlock()
		if !w.done {
			w.withdrawLocked(now)
		}
	}, nil)
}
