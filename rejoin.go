package leasehold

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/store"
)

// Under contention most of the cost of a turn is to release the lock and then to join
// the queue for the next turn. A client does both in one message, if the store can (see
// store.Store.ReleaseAndRejoin), when it will want the lock again at once, as it did the last few
// times. The place is then reserved for the first
// goroutine that wants the lock; if none does within a moment it is given up.

// releaseOrRejoin makes the request r in the store. It may reserve the next place in the
// store's queue.
func (q *queue) releaseOrRejoin(ctx context.Context, r store.ReleaseRequest) error {
	if !q.c.rejoins {
		return q.c.store.Release(ctx, r)
	}
	p := q.reservationWanted()
	if p == nil {
		err := q.c.store.Release(ctx, r)
		q.noteRelease()
		return err
	}
	queued, err := q.c.store.ReleaseAndRejoin(ctx, r, p.req)
	if queued && !q.reserveNext(p) {
		q.c.giveUp(p)
	}
	return err
}

// noteRelease notes that the lock was released.
func (q *queue) noteRelease() {
	now := q.c.lockQueues()
	defer q.c.mutex.Unlock()
	q.c.contentions.Of(q.name).Released(now)
}

// reservationWanted returns the place to reserve with a release, or nil.
func (q *queue) reservationWanted() *reservation {
	now := q.c.lockQueues()
	defer q.c.mutex.Unlock()
	if !q.m.RejoinWanted() {
		return nil
	}
	p := &reservation{req: q.request(q.traceLocked()), start: now, rank: rankOf(time.Now())}
	p.req.Owner = ownerAt(p.rank)
	return p
}

// reserveNext reserves p for the next goroutine that wants the lock. It returns false if
// another goroutine has asked the store meanwhile.
func (q *queue) reserveNext(p *reservation) bool {
	q.c.mutex.Lock()
	defer q.c.mutex.Unlock()
	next := q.c.queueForLocked(q.terms) // q may have been forgotten meanwhile
	if _, refused := next.stepLocked(waitq.Event[*waiter]{Kind: waitq.Reserve, Rank: p.rank}, 0); refused {
		return false
	}
	next.keepReservationLocked(p)
	return true
}
