package waits

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/store"
)

// queue has the goroutines of one client that want the same. waitq.Queue decides what they
// do, and the queue carries that out. It exists only while a goroutine asks, holds or waits.
// The queues' mutex guards it.
type queue struct {
	Terms
	c        *Queues
	m        waitq.Queue[*waiter]
	place    *place       // in the store's queue; nil when there is none
	reserved *reservation // such a place that no waiter has taken over yet

	positions      positions
	listeners, all news // of why they wait

	reason   error // why the lock was not granted so far
	reasonAt clock.Instant
	refresh  refresher // for waiters that give up
}

// stepLocked applies an event to the queue and carries out what follows from it.
// It returns the action that is left to the caller, of which there is one at
// most.
func (q *queue) stepLocked(e waitq.Event[*waiter], now clock.Instant) (left waitq.Action[*waiter], ok bool) {
	q.markEndedLocked()
	var room [4]waitq.Action[*waiter]
	for _, a := range q.m.Step(e, now, room[:0]) {
		switch a.Kind {
		case waitq.Tell:
			a.Waiter.Of.news = told
		case waitq.TellAll:
			q.tellLocked(&q.all)
			q.tellLocked(&q.listeners)
		case waitq.TellListeners:
			q.tellLocked(&q.listeners)
		case waitq.Start:
			go q.waitInStore()
		default:
			left, ok = a, true
		}
	}
	if q.m.Phase() != waitq.Waiting {
		q.place = nil
	}
	if q.m.Idle() {
		delete(q.c.known, q.Terms)
	}
	return left, ok
}

// markEndedLocked has the queue pass over waiters whose context has ended and that are
// about to leave. An event gives something to the first waiter at most.
func (q *queue) markEndedLocked() {
	var marked *waitq.Waiter[*waiter]
	for w := q.m.Foremost(); w != nil && w != marked && w.Of.ctx.Err() != nil; w = q.m.Foremost() {
		q.m.Step(waitq.Event[*waiter]{Kind: waitq.Ended, Waiter: w}, 0, nil)
		marked = w
	}
}

// setReasonLocked records why the lock was not granted. pushed says that the
// store goes on waiting.
func (q *queue) setReasonLocked(err error, pushed bool, now clock.Instant) {
	q.reason, q.reasonAt = err, now
	q.stepLocked(waitq.Event[*waiter]{Kind: waitq.NewReason, Why: classOf(err), Pushed: pushed}, now)
	if q.place != nil {
		q.place.watchPatienceLocked(now)
	}
}

// refuseAllLocked ends all waits of the queue with err.
func (q *queue) refuseAllLocked(err error) {
	for _, a := range q.m.Step(waitq.Event[*waiter]{Kind: waitq.Refused}, 0, nil) {
		a.Waiter.Of.endLocked(answer{err: err})
	}
}

// rankOf is the rank of a place that is taken at that time.
func rankOf(t time.Time) uint64 { return uint64(max(0, t.UnixMicro())) }

// request is the request of the queue for a place of that rank.
func (q *queue) request(rank uint64, trace string) store.WaitRequest {
	r := store.WaitRequest{Lease: q.c.lease(&q.Terms, trace)}
	r.Owner = store.NewOwnerAt(time.UnixMicro(int64(rank)))
	return r
}

// traceLocked returns the trace of the waiter that is first in the queue, if there is one.
func (q *queue) traceLocked() string {
	if first := q.m.Foremost(); first != nil {
		return first.Of.by.Trace
	}
	return ""
}

// newPlaceLocked takes the queue's next place in the store's queue, or returns
// nil if no waiter is left.
func (q *queue) newPlaceLocked(now clock.Instant) *place {
	a, ok := q.stepLocked(waitq.Event[*waiter]{Kind: waitq.Enter, Rank: rankOf(time.Now())}, now)
	if !ok {
		return nil
	}
	q.place = &place{rank: q.m.Rank()}
	if a.Reserved {
		q.place.reserved = q.dropReservationLocked()
	}
	return q.place
}

// Each news wakes all waiters that read it, and a lock that changes hands has news all the
// time. Up to fewWaiters are told at once; more of them are told together what is new, as seldom
// as keeps them from using the processor for nothing else.
const (
	fewWaiters = 64
	perWaiter  = 100 * time.Microsecond
)

// news wakes waiters of a queue that have to read anew why they wait. The queues' mutex guards
// it.
type news struct {
	next chan struct{} // closed when there is some; nil while nobody waits for it
	due  bool          // it will be closed soon
}

// waitLocked returns a channel that is closed when there is news.
func (n *news) waitLocked() <-chan struct{} {
	if n.next == nil {
		n.next = make(chan struct{})
	}
	return n.next
}

// tellLocked wakes the waiters that wait for n.
func (q *queue) tellLocked(n *news) {
	switch many := q.m.Len(); {
	case n.next == nil || n.due:
	case many <= fewWaiters:
		close(n.next)
		n.next = nil
	default:
		n.due = true
		time.AfterFunc(time.Duration(many)*perWaiter, func() { q.c.holds.Guard.Run(func() { q.tellDue(n) }, nil) })
	}
}

// tellDue wakes many. It does so without the mutex, since that takes long.
func (q *queue) tellDue(n *news) {
	q.c.mutex.Lock()
	next := n.next
	n.next, n.due = nil, false
	q.c.mutex.Unlock()
	if next != nil {
		close(next)
	}
}

// told is a channel with news.
var told = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
