package leasehold

import (
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/store"
)

// queue has the goroutines of one client that want the same. waitq.Queue decides what they
// do, and the queue carries that out. It exists only while a goroutine asks, holds or waits.
// The queues' mutex guards it.
type queue struct {
	terms
	c        *queues
	m        waitq.Queue[*waiter]
	place    *place       // in the store's queue; nil when there is none
	reserved *reservation // such a place that no waiter has taken over yet

	positions      positions
	listeners, all news // of why they wait

	reason   error // why the lock was not granted so far
	reasonAt clock.Instant
	refresh  refresher // for waiters that give up
}

// queues are all the queues of a client. They have a mutex of their own, so that renewals and
// deadlines do not wait until queues with many waiters are served. It is locked before the
// client's, never after it.
type queues struct {
	holds
	mutex        sync.Mutex
	known        map[terms]*queue
	numbered     uint64 // queues of one goroutine so far
	contentions  waitq.Contentions
	reservations reservations
}

// init makes the queues ready for use.
func (c *queues) init() {
	c.known = make(map[terms]*queue)
	c.reservations.init(c)
}

// lockQueues locks the mutex of the queues and reads the clock, as core.lock does for that of
// the client.
func (c *queues) lockQueues() (now clock.Instant) {
	c.mutex.Lock()
	read := false
	defer func() {
		if !read {
			c.mutex.Unlock()
		}
	}()
	now = c.now()
	read = true
	return now
}

// queueForLocked returns the queue for t.
func (c *queues) queueForLocked(t terms) *queue {
	q := c.known[t]
	if q == nil {
		q = &queue{terms: t, c: c}
		q.m = waitq.New[*waiter](t.life.TTL, c.contentions.Of(t.name))
		c.known[t] = q
	}
	return q
}

// ownQueueLocked returns a queue for t that nobody else joins.
func (c *queues) ownQueueLocked(t terms) *queue {
	if ownPlaces {
		c.numbered++
		t.own = c.numbered
	}
	return c.queueForLocked(t)
}

// triesFirstLocked reports whether the goroutine that has just arrived asks the
// store once before it waits.
func (q *queue) triesFirstLocked(now clock.Instant) bool {
	var room [1]waitq.Action[*waiter]
	return len(q.m.Step(waitq.Event[*waiter]{Kind: waitq.Arrive}, now, room[:0])) > 0
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
			go asker{q}.waitInStore()
		default:
			left, ok = a, true
		}
	}
	if q.m.Phase() != waitq.Waiting {
		q.place = nil
	}
	if q.m.Idle() {
		delete(q.c.known, q.terms)
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

// ownerAt returns a fresh owner value of that rank.
func ownerAt(rank uint64) string { return store.NewOwnerAt(time.UnixMicro(int64(rank))) }

// request is the request of the queue, without an owner. trace is that of the goroutine
// for which it asks.
func (q *queue) request(trace string) store.WaitRequest {
	return store.WaitRequest{
		Lease: store.Lease{Name: q.name, Kind: q.kind, Weight: q.weight, Meta: q.c.describer.describe(q.purpose, trace, !q.unrenewed), TTL: q.life.TTL, Require: q.require},
		Barge: q.barge,
	}
}

// traceLocked returns the trace of the waiter that is first in the queue, if there is one.
func (q *queue) traceLocked() string {
	if first := q.m.Foremost(); first != nil {
		return first.Of.r.call.trace
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
