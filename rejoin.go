package leasehold

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// Under contention most of the cost of a turn is to release the lock and then to join
// the line for the next turn. A client does both in one message, if the store can (see
// store.Rejoiner), when it will want the lock again at once: others of its goroutines
// wait, or it did so the last few times. The place is then reserved for the first
// goroutine that wants the lock; if none does within a moment it is given up.

const (
	// rejoinWithin is how soon after a release a client has to want the lock again.
	rejoinWithin = 10 * time.Millisecond
	// rejoinAfter is how many times in a row it has to have done so. After each
	// reservation that nobody took it is four times as many, up to rejoinMost, since a
	// place that nobody wants costs others more than one that is wanted saves.
	rejoinAfter, rejoinMost = 4, 4096
	// reservedFor is how long a place is reserved at most; it is half of that at least.
	// A timer for each place would cost most of what is saved.
	reservedFor = 50 * time.Millisecond
)

// contention is what a client remembers of a lock that other clients want too.
type contention struct {
	busy       bool          // it was held when it was last asked for
	releasedAt clock.Instant // when it was released; 0: not since it was asked for
	returns    int           // how many times in a row it was asked for soon after that
	needs      int           // how many are needed to expect it again; 0: rejoinAfter
}

// contentions is the contention of some locks, by a hash of their names. Without
// contention, a single attempt is cheapest; with it, joining the line at once is.
type contentions [256]contention

func (c *contentions) of(name string) *contention {
	h := uint32(2166136261) // FNV-1a, which is the same in every run
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return &c[h%uint32(len(c))]
}

// expected reports whether this client will want the lock again after its release.
func (c *contention) expected() bool {
	return c.busy && c.returns >= max(c.needs, rejoinAfter)
}

// rejoined notes that this client wanted the lock again. If it does so often, fewer
// times are needed to expect it.
func (c *contention) rejoined() {
	if c.returns++; c.returns >= 4*max(c.needs, rejoinAfter) {
		c.needs /= 2
		c.returns = max(c.needs, rejoinAfter)
	}
}

// missed notes that a reservation was not taken.
func (c *contention) missed() {
	c.returns, c.needs = 0, min(4*max(c.needs, rejoinAfter), rejoinMost)
}

// asked notes that the lock is asked for.
func (c *contention) asked(now clock.Instant) {
	if c.releasedAt == 0 {
		return
	}
	if now.Sub(c.releasedAt) <= rejoinWithin {
		c.rejoined()
	} else {
		c.returns = 0
	}
	c.releasedAt = 0
}

// reservation is a place in the store's line that was taken with a release.
type reservation struct {
	req   store.WaitRequest
	start clock.Instant // before it was asked for
	since time.Time     // its rank
	old   bool          // the timer has found it once already
}

// releaseOrRejoin releases r, the request of h, in the store. It may reserve the next
// place in the line.
func (h *hold) releaseOrRejoin(ctx context.Context, r store.ReleaseRequest) error {
	if h.home == nil || h.c.rejoiner == nil { // it did not come from a line
		return h.c.store.Release(ctx, r)
	}
	p := h.reservationWanted()
	if p == nil {
		err := h.c.store.Release(ctx, r)
		h.c.renewer.noteRelease(h.home.name)
		return err
	}
	standing, err := h.c.rejoiner.ReleaseAndRejoin(ctx, r, p.req)
	if standing && !h.reserveNext(p) {
		h.c.giveUp(p)
	}
	return err
}

// noteRelease notes that a lock was released.
func (rn *renewer) noteRelease(name string) {
	now := rn.lock()
	defer rn.mu.Unlock()
	if c := rn.contentions.of(name); c.busy {
		c.releasedAt = now
	}
}

// reservationWanted returns the place to reserve when h is released, or nil.
func (h *hold) reservationWanted() *reservation {
	q, rn := h.home, &h.c.renewer
	now := rn.lock()
	defer rn.mu.Unlock()
	certain := h.q != nil && h.q.first != nil
	if c := rn.contentions.of(q.name); !certain && !c.expected() {
		return nil
	}
	p := &reservation{req: q.request(max(q.lengthLocked(), 1)), start: now, since: time.Now()}
	p.req.Owner = store.NewOwnerAt(p.since)
	return p
}

// reserveNext has p be there for whoever wants it first, and says whether it can be: somebody
// may have gone to the store meanwhile.
func (h *hold) reserveNext(p *reservation) bool {
	rn := &h.c.renewer
	rn.mu.Lock()
	defer rn.mu.Unlock()
	q, _ := rn.queueForLocked(h.home.terms)
	if q.asking || q.reserved != nil || q.h != nil && q.h != h {
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

// takeReservationLocked is the place that is kept for whoever comes first, if there is one. The
// renewer's mutex is held.
func (q *queue) takeReservationLocked() *reservation {
	p := q.reserved
	if p != nil {
		q.reserved = nil
		rn := &q.c.renewer
		rn.returned = slices.DeleteFunc(rn.returned, func(o *queue) bool { return o == q })
	}
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
		if !q.reserved.old {
			q.reserved.old = true
			continue
		}
		old = append(old, q.takeReservationLocked())
		rn.contentions.of(q.name).missed()
		q.askIfNeededLocked()
	}
	if rn.lapsing = len(rn.returned) > 0; rn.lapsing {
		rn.lapse.Reset(reservedFor / 2)
	}
	rn.mu.Unlock()
	for _, p := range old {
		if returnedGivenUp {
			rn.c.giveUp(p)
		}
	}
}

// giveUp gives up a place that nobody wants.
func (c *Client) giveUp(p *reservation) {
	ctx, cancel := context.WithTimeout(context.Background(), p.req.TTL)
	defer cancel()
	if err := c.store.Release(ctx, store.ReleaseRequest{Lease: p.req.Lease}); err != nil && !errors.Is(err, store.ErrNotHeld) {
		c.log.Debug("a place in line that nobody wants ends by its TTL", "lock", p.req.Name, "err", err)
	}
}
