package waits

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/store"
)

// Under contention most of the cost of a turn is to release the lock and then to join
// the queue for the next turn. A client does both in one message, if the store can (see
// store.Store.ReleaseAndRejoin), when it will want the lock again at once, as it did the last few
// times. The place is then reserved for the first
// goroutine that wants the lock; if none does within a moment it is given up.

// reservedFor is how long a place is reserved at most; it is half of that at least. While
// places follow each other quickly, the timer for them runs on, since setting it for each place
// would cost most of what is saved. But if it fired once for each place, it would cost
// more: it would wake a process that has nothing to do. Stopping it then saves 80 of 800 µs of processor time
// in a turn of 64 processes in ZooKeeper.
const reservedFor = 50 * time.Millisecond

// reservation is a place in the store's queue that was taken with a release.
type reservation struct {
	req   store.WaitRequest
	start clock.Instant // before it was asked for
	rank  uint64
	index int // in reservations
}

// reservations are the places that no waiter has taken over yet.
type reservations struct {
	of      []*queue
	timer   *time.Timer // runs lapse
	running bool
	last    clock.Instant // when the last of them was asked for
	seldom  bool          // the one before that was asked for much earlier
}

func (rs *reservations) init(c *Queues) {
	rs.timer = time.AfterFunc(reservedFor, func() { c.holds.Guard.Run(c.lapse, nil) })
	rs.timer.Stop()
}

// keepReservationLocked keeps p for the next waiter of the queue.
func (q *queue) keepReservationLocked(p *reservation) {
	q.reserved = p
	rs := &q.c.reservations
	rs.seldom, rs.last = p.start.Sub(rs.last) > reservedFor/2, p.start
	p.index = len(rs.of)
	rs.of = append(rs.of, q)
	if !rs.running {
		rs.running = true
		rs.timer.Reset(reservedFor / 2)
	}
}

// dropReservationLocked returns the place that was reserved.
func (q *queue) dropReservationLocked() *reservation {
	p, rs := q.reserved, &q.c.reservations
	last := rs.of[len(rs.of)-1]
	rs.of[p.index], last.reserved.index = last, p.index
	rs.of = rs.of[:len(rs.of)-1]
	q.reserved = nil
	if rs.seldom && len(rs.of) == 0 && rs.timer.Stop() {
		rs.running = false
	}
	return p
}

// lapse gives up the places that no goroutine has claimed in time. A timer calls it.
func (c *Queues) lapse() {
	c.mutex.Lock()
	var old []*reservation
	rs := &c.reservations
	for _, q := range slices.Clone(rs.of) {
		a, _ := q.stepLocked(waitq.Event[*waiter]{Kind: waitq.Lapse}, 0)
		if q.m.Reserved() {
			continue
		}
		if p := q.dropReservationLocked(); a.Kind == waitq.GiveUp {
			old = append(old, p)
		}
	}
	if rs.running = len(rs.of) > 0; rs.running {
		rs.timer.Reset(reservedFor / 2)
	}
	c.mutex.Unlock()
	for _, p := range old {
		c.giveUp(p)
	}
}

// giveUp gives up a place that nobody wants.
func (c *Queues) giveUp(p *reservation) {
	ctx, cancel := context.WithTimeout(context.Background(), p.req.TTL)
	defer cancel()
	if err := c.holds.Store.Release(ctx, store.ReleaseRequest{Lease: p.req.Lease}); err != nil && !errors.Is(err, store.ErrNotHeld) {
		c.holds.Log.Debug("a place in the queue that nobody wants ends by its TTL", "lock", p.req.Name, "err", err)
	}
}

// Release makes the request r in the store. It may reserve the next place in the
// store's queue.
func (q *queue) Release(ctx context.Context, r store.ReleaseRequest) error {
	if !q.c.rejoins {
		return q.c.holds.Store.Release(ctx, r)
	}
	p := q.reservationWanted()
	if p == nil {
		err := q.c.holds.Store.Release(ctx, r)
		q.noteRelease()
		return err
	}
	queued, err := q.c.holds.Store.ReleaseAndRejoin(ctx, r, p.req)
	if queued && !q.reserveNext(p) {
		q.c.giveUp(p)
	}
	return err
}

// noteRelease notes that the lock was released.
func (q *queue) noteRelease() {
	now := q.c.lock()
	defer q.c.mutex.Unlock()
	q.c.contentions.Of(q.Name).Released(now)
}

// reservationWanted returns the place to reserve with a release, or nil.
func (q *queue) reservationWanted() *reservation {
	now := q.c.lock()
	defer q.c.mutex.Unlock()
	if !q.m.RejoinWanted() {
		return nil
	}
	p := &reservation{start: now, rank: rankOf(time.Now())}
	p.req = q.request(p.rank, q.traceLocked())
	return p
}

// reserveNext reserves p for the next goroutine that wants the lock. It returns false if
// another goroutine has asked the store meanwhile.
func (q *queue) reserveNext(p *reservation) bool {
	q.c.mutex.Lock()
	defer q.c.mutex.Unlock()
	next := q.c.queueLocked(q.Terms) // q may have been forgotten meanwhile
	if _, refused := next.stepLocked(waitq.Event[*waiter]{Kind: waitq.Reserve, Rank: p.rank}, 0); refused {
		return false
	}
	next.keepReservationLocked(p)
	return true
}
