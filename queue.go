package leasehold

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/store"
)

// terms are what a goroutine wants of a lock. Goroutines with equal terms can share a
// place in the store's line, and a lease one after the other.
type terms struct {
	name, purpose string
	life          leasefsm.Config
	require       store.Class
	barge         bool
}

// queue is the goroutines of one client that want the same, first come first
// served. For all of them at most one asks the store or stands in its line, and
// none does while one of them has a lease that may be passed on.
//
// It is there only while somebody asks, holds or waits. The renewer's mutex
// guards it.
type queue struct {
	terms
	c           *Client
	asking      bool         // somebody asks the store
	place       *place       // in the store's line; nil when there is none
	reserved    *reservation // such a place that nobody has taken yet
	since       time.Time    // its rank, kept until somebody is granted the lock or nobody waits
	h           *hold        // has a lease, and passes it on
	first, last *waiter
	reason      error // why the lock was not granted so far
	reasonAt    clock.Instant
	trouble     clock.Instant // since when the store has given no answer at all
	refresh     *refresh      // the last one, by waiters that gave up
}

// waiter is one goroutine in a queue.
type waiter struct {
	q          *queue
	l          *Lock
	ctx        context.Context
	bound      bool
	prev, next *waiter
	done       bool          // answered, and no longer in the queue
	answer     chan answer   // holds one
	from       clock.Instant // when it first looked into trouble
	withdrew   *departure    // from where it left the queue without an answer; nil: it did not
	placeGone  chan struct{} // closed when nothing is left of the place that it withdrew from; or nil
}

// answer ends a wait, unless it is the zero one, which says that there is a new
// reason for it.
type answer struct {
	lease *Lease
	how   EventKind
	err   error
}

// request is what the queue asks the store for when so many wait, but for the
// owner.
func (q *queue) request(waiters int) store.WaitRequest {
	spare := q.spare(waiters)
	return store.WaitRequest{
		Lease: store.Lease{Name: q.name, Meta: q.c.describe(q.purpose, spare), TTL: q.life.TTL, Require: q.require},
		Spare: spare,
		Barge: q.barge,
	}
}

// queueForLocked returns the queue for t, and whether it was there before. The
// renewer's mutex is held.
func (rn *renewer) queueForLocked(t terms) (q *queue, known bool) {
	if q = rn.queues[t]; q != nil {
		return q, true
	}
	q = &queue{terms: t, c: rn.c}
	rn.queues[t] = q
	return q, false
}

// askIfNeededLocked starts a goroutine that asks the store if the queue has waiters and
// none of them asks yet. It forgets a queue that is no longer needed.
func (q *queue) askIfNeededLocked() {
	switch {
	case q.asking || q.h != nil:
	case q.foremostLocked() != nil:
		q.asking = true
		go q.waitForQueue()
	case q.first == nil && q.reserved == nil:
		delete(q.c.renewer.queues, q.terms)
	}
}

// placeOrQueueLocked is askIfNeededLocked for w, which has just joined. If no other
// goroutine of the client asks, holds or waits, it returns a place at which w waits in
// its own goroutine. That saves a goroutine and two switches. A waiter with a reason
// function cannot wait in this way.
func (w *waiter) placeOrQueueLocked(now clock.Instant) *place {
	q := w.q
	if q.asking || q.h != nil || q.first != w || w.next != nil || w.l.listens() {
		q.askIfNeededLocked()
		return nil
	}
	q.asking = true
	p := q.newPlaceLocked(w.ctx)
	p.alone = w
	p.watchPatienceLocked(now)
	return p
}

// joinLocked puts a goroutine at the end of the queue, or before all others. The
// renewer's mutex is held.
func (q *queue) joinLocked(l *Lock, ctx context.Context, bound, ahead bool) *waiter {
	w := &waiter{q: q, l: l, ctx: ctx, bound: bound, answer: make(chan answer, 1)}
	switch {
	case q.first == nil:
		q.first, q.last = w, w
		q.since = time.Time{} // the waiter with that rank has left
	case ahead:
		w.next, q.first.prev, q.first = q.first, w, w
	default:
		w.prev, q.last.next, q.last = q.last, w, w
	}
	if q.h != nil || q.reason != nil {
		w.notifyLocked()
	}
	return w
}

// removeLocked takes w out of the queue. The renewer's mutex is held.
func (q *queue) removeLocked(w *waiter) {
	w.done = true
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.last = w.prev
	}
	w.prev, w.next = nil, nil
}

// lengthLocked is how many wait. The renewer's mutex is held.
func (q *queue) lengthLocked() (n int) {
	for w := q.first; w != nil; w = w.next {
		n++
	}
	return n
}

// foremostLocked returns the first waiter whose context has not ended, or nil.
func (q *queue) foremostLocked() *waiter {
	w := q.first
	for w != nil && w.ctx.Err() != nil { // it is about to leave by itself
		w = w.next
	}
	return w
}

// deliverLocked answers w, and replaces an answer that w has not read yet. The mutex
// keeps others from filling the room in between.
func (w *waiter) deliverLocked(a answer) {
	select {
	case <-w.answer:
	default:
	}
	w.answer <- a
}

// refuseAllLocked ends all waits of the queue with err.
func (q *queue) refuseAllLocked(err error) {
	for q.first != nil {
		w := q.first
		q.removeLocked(w)
		w.deliverLocked(answer{err: err})
	}
}

// setReasonLocked records why the lock was not granted, and notifies the waiters.
func (q *queue) setReasonLocked(err error, now clock.Instant) {
	q.reason, q.reasonAt = err, now
	if busy, _ := canWait(err); busy != nil || opens(err) {
		q.trouble = 0
	} else if q.trouble == 0 {
		q.trouble = now
	}
	if q.place != nil {
		q.place.watchPatienceLocked(now)
	}
	q.notifyAllLocked()
}

// notifyAllLocked makes all waiters read the reason again.
func (q *queue) notifyAllLocked() {
	for w := q.first; w != nil; w = w.next {
		w.notifyLocked()
	}
}

// notifyLocked makes w read the reason again, if w uses it.
func (w *waiter) notifyLocked() {
	if w.l.listens() || w.q.trouble != 0 {
		w.deliverLocked(answer{})
	}
}

// reasonLocked returns why w waits at now.
func (w *waiter) reasonLocked(now clock.Instant) error {
	q, ahead := w.q, w.aheadLocked()
	if q.h != nil {
		busy := q.h.busyLocked(now)
		busy.Position = ahead + 1
		return busy
	}
	busy, ok := q.reason.(*BusyError)
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

// aheadLocked returns how many waiters of the queue come before w.
func (w *waiter) aheadLocked() (n int) {
	for o := w.prev; o != nil; o = o.prev {
		n++
	}
	return n
}

// troubleSinceLocked is since when the store has given w no answer; 0 when it has. The
// renewer's mutex is held.
func (w *waiter) troubleSinceLocked(now clock.Instant) clock.Instant {
	if w.q.trouble == 0 || w.q.h != nil {
		return 0
	}
	if w.from == 0 {
		w.from = now
	}
	return max(w.from, w.q.trouble)
}

// patienceLocked is how long w goes on waiting for a store that gives it no answer: for
// a TTL. It says whether there is such trouble. The renewer's mutex is held.
func (w *waiter) patienceLocked(now clock.Instant) (left time.Duration, trouble bool) {
	since := w.troubleSinceLocked(now)
	return since.Add(w.q.life.TTL).Sub(now), since != 0
}

// leave takes w, whose context or patience has ended, out of the queue, and
// returns the error that its wait ends with; or the answer that came first. The last to
// leave stays until nothing is left of it in the store's line.
func (w *waiter) leave() (*Lease, EventKind, error) {
	q := w.q
	rn := &q.c.renewer
	now := rn.lock()
	if w.done {
		rn.mu.Unlock()
		a := <-w.answer
		return a.lease, a.how, a.err
	}
	w.withdrawLocked(now)
	rn.mu.Unlock()
	w.awaitPlace()
	if w.ctx.Err() == nil {
		return nil, 0, w.withdrew.why
	}
	return nil, 0, gaveUp(w.ctx, q.refreshHolder(w.ctx, *w.withdrew))
}

// withdrawLocked takes w out of the queue, unless it is out of it already. The renewer's
// mutex is held.
func (w *waiter) withdrawLocked(now clock.Instant) {
	if w.withdrew != nil {
		return
	}
	s := w.departureLocked(now)
	w.withdrew = &s
	q, ahead := w.q, w.prev != nil
	q.removeLocked(w)
	w.done = false // it has no answer
	if p := q.place; p != nil && (q.first == nil || !placeKept && !ahead) {
		p.cancel()
		w.placeGone = p.gone
	}
	q.askIfNeededLocked()
}

// awaitPlace waits until nothing is left of the place in the store's line, if w was
// the last who wanted it.
func (w *waiter) awaitPlace() {
	if w.placeGone != nil {
		<-w.placeGone
	}
}

// abandon is leave for a waiter whose goroutine goes no further, since a function
// of the user's has ended it.
func (w *waiter) abandon() {
	rn := &w.q.c.renewer
	rn.mu.Lock()
	if w.done {
		rn.mu.Unlock()
		if a := <-w.answer; a.lease != nil {
			a.lease.discard()
		}
		return
	}
	w.withdrawLocked(0) // the time is for an error that nobody sees
	rn.mu.Unlock()
	w.awaitPlace()
}

// stepAside withdraws w when its context ends while a function of the user's keeps
// its goroutine from leaving.
func (w *waiter) stepAside() {
	rn := &w.q.c.renewer
	w.q.c.contain(func() {
		now := rn.lock()
		defer rn.mu.Unlock()
		if !w.done {
			w.withdrawLocked(now)
		}
	}, nil)
}

// busyLocked is the error for those who want the lock that h holds.
func (h *hold) busyLocked(now clock.Instant) *BusyError {
	if h.holder == nil {
		who := store.DecodeHolder(h.req.Owner, h.req.Meta)
		h.holder = &who
	}
	return &BusyError{Name: h.req.Name, Holder: *h.holder, ExpiresIn: max(h.fsm.Until().Sub(now), time.Nanosecond)}
}

// attachLocked makes h the lease that the queue passes on, where the client does so.
// The goroutine that asked the store has it. The renewer's mutex is held.
func (q *queue) attachLocked(h *hold, now clock.Instant) {
	q.asking, q.place, q.since, q.reason, q.trouble = false, nil, time.Time{}, nil, 0
	if q.passesOn() {
		q.h, h.q = h, q
		h.reserveLocked(h.token+1, h.spare)
		h.mark = now
		q.notifyAllLocked()
	}
	q.askIfNeededLocked()
}

// detachLocked undoes attachLocked: h is not passed on any more, and its waiters ask the
// store.
func (h *hold) detachLocked(now clock.Instant) {
	q := h.q
	if q == nil {
		return
	}
	q.h, h.q = nil, nil
	if q.first != nil {
		q.reason, q.reasonAt = h.busyLocked(now), now
	}
	q.askIfNeededLocked()
}

// detachReleased lets the waiters of h ask the store, now that h was released.
func (rn *renewer) detachReleased(h *hold) {
	if h.q == nil { // and only the goroutine that releases h could set it now
		return
	}
	now := rn.lock()
	defer rn.mu.Unlock()
	h.detachLocked(now)
}
