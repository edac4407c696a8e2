package leasehold

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/store"
)

// Under contention most of the cost of a turn is to release the lock and then to join
// the queue for the next turn. A client does both in one message, if the store can (see
// store.Rejoiner), when it will want the lock again at once: others of its goroutines
// wait, or it did so the last few times. The place is then reserved for the first
// goroutine that wants the lock; if none does within a moment it is given up.

// releaseOrRejoin releases r, the request of h, in the store. It may reserve the next
// place in the queue.
func (h *hold) releaseOrRejoin(ctx context.Context, r store.ReleaseRequest) error {
	if h.home == nil || h.c.rejoiner == nil { // it did not come from a line
		return h.c.store.Release(ctx, r)
	}
	p := h.reservationWanted()
	if p == nil {
		err := h.c.store.Release(ctx, r)
		h.c.noteRelease(h.home.name)
		return err
	}
	standing, err := h.c.rejoiner.ReleaseAndRejoin(ctx, r, p.req)
	if standing && !h.reserveNext(p) {
		h.c.giveUp(p)
	}
	return err
}

// noteRelease notes that a lock was released.
func (c *Client) noteRelease(name string) {
	now := c.lock()
	defer c.mu.Unlock()
	c.queues.contentions.Of(name).Released(now)
}

// reservationWanted returns the place to reserve when h is released, or nil.
func (h *hold) reservationWanted() *reservation {
	q := h.home
	now := h.c.lock()
	defer h.c.mu.Unlock()
	if !q.m.RejoinWanted(h.q != nil) {
		return nil
	}
	p := &reservation{req: q.request(max(q.m.Len(), 1)), start: now, rank: rankOf(time.Now())}
	p.req.Owner = ownerAt(p.rank)
	return p
}

// reserveNext reserves p for the next goroutine that wants the lock. It returns false if
// another goroutine has asked the store meanwhile.
func (h *hold) reserveNext(p *reservation) bool {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	q := h.c.queueForLocked(h.home.terms)
	if _, refused := q.stepLocked(waitq.Event[*waiter]{Kind: waitq.Reserve, Rank: p.rank, Own: q.h == h}, 0); refused {
		return false
	}
	q.keepReservationLocked(p)
	return true
}
