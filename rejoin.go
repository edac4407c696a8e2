package leasehold

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
// the line for the next turn. A client does both in one message, if the store can (see
// store.Returner), when it will want the lock again at once: others of its goroutines
// wait, or it did so the last few times. The place is then reserved for the first
// goroutine that wants the lock; if none does within a moment it is given up.

// reservedFor is how long a place is reserved at most; it is half of that at least.
// A timer for each place would cost most of what is saved.
const reservedFor = 50 * time.Millisecond

// reservation is a place in the store's line that was taken with a release.
type reservation struct {
	req   store.Request
	start clock.Instant // before it was asked for
	rank  uint64
}

// releaseOrRejoin releases r, the request of h, in the store. It may reserve the next
// place in the line.
func (h *hold) releaseOrRejoin(ctx context.Context, r store.Request) error {
	if h.home == nil || h.c.returner == nil { // it did not come from a line
		return h.c.store.Release(ctx, r)
	}
	p := h.reservationWanted()
	if p == nil {
		err := h.c.store.Release(ctx, r)
		h.c.renewer.noteRelease(h.home.name)
		return err
	}
	standing, err := h.c.returner.Return(ctx, r, p.req)
	if standing && !h.reserveNext(p) {
		h.c.giveUp(p)
	}
	return err
}

// noteRelease notes that a lock was released.
func (rn *renewer) noteRelease(name string) {
	now := rn.lock()
	defer rn.mu.Unlock()
	rn.contentions.Of(name).Released(now)
}

// reservationWanted returns the place to reserve when h is released, or nil.
func (h *hold) reservationWanted() *reservation {
	q, rn := h.home, &h.c.renewer
	now := rn.lock()
	defer rn.mu.Unlock()
	if !q.m.RejoinWanted(h.q != nil) {
		return nil
	}
	p := &reservation{req: q.request(max(q.m.Len(), 1)), start: now, rank: rankOf(time.Now())}
	p.req.Owner = ownerAt(p.rank)
	return p
}

// reserveNext has p be there for whoever wants it first, and says whether it can be: somebody
// may have gone to the store meanwhile.
func (h *hold) reserveNext(p *reservation) bool {
	rn := &h.c.renewer
	rn.mu.Lock()
	defer rn.mu.Unlock()
	q := rn.queueForLocked(h.home.terms)
	if _, refused := q.stepLocked(waitq.Event[*waiter]{Kind: waitq.Reserve, Rank: p.rank, Own: q.h == h}, 0); refused {
		return false
	}
	q.reserved = p
	rn.returned = append(rn.returned, q)
	if !rn.lapsing {
		rn.lapsing = true
		rn.lapse.Reset(reservedFor / 2)
	}
	return true
}

// dropReservationLocked returns the place that was reserved. The renewer's mutex is held.
func (q *queue) dropReservationLocked() *reservation {
	p, rn := q.reserved, &q.c.renewer
	q.reserved = nil
	rn.returned = slices.DeleteFunc(rn.returned, func(o *queue) bool { return o == q })
	return p
}

// lapses is called from time to time, and has those places given up that nobody wanted.
func (rn *renewer) lapses() {
	rn.c.contain(rn.lapseOld, nil)
}

func (rn *renewer) lapseOld() {
	rn.mu.Lock()
	var old []*reservation
	for _, q := range slices.Clone(rn.returned) {
		a, _ := q.stepLocked(waitq.Event[*waiter]{Kind: waitq.Lapse}, 0)
		if q.m.Reserved() {
			continue
		}
		if p := q.dropReservationLocked(); a.Kind == waitq.GiveUp {
			old = append(old, p)
		}
	}
	if rn.lapsing = len(rn.returned) > 0; rn.lapsing {
		rn.lapse.Reset(reservedFor / 2)
	}
	rn.mu.Unlock()
	for _, p := range old {
		rn.c.giveUp(p)
	}
}

// giveUp gives up a place that nobody wants.
func (c *Client) giveUp(p *reservation) {
	ctx, cancel := context.WithTimeout(context.Background(), p.req.TTL)
	defer cancel()
	if err := c.store.Release(ctx, p.req); err != nil && !errors.Is(err, store.ErrNotHeld) {
		c.log.Debug("a place in line that nobody wants ends by its TTL", "lock", p.req.Name, "err", err)
	}
}
