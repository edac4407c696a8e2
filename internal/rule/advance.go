package rule

import (
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Turn says what happened to a place whose turn has come.
type Turn struct {
	Owner string
	// Token is the token of the lease that was handed to it. Zero means that the
	// owner barges and was only notified.
	Token fence.Token
	// Slots are those of the lease, if every permit is numbered.
	Slots Slots
	// ExpiresIn is how long the lease lasts unless it is renewed.
	ExpiresIn time.Duration
}

// Advance hands the lock to waiters: as many from the head of the queue as there
// is room for together. It passes over a waiter whose exact slots are taken. Each
// lease lasts as long as the place would have, because its owner does not know of
// it yet and cannot count on more. A barging waiter is removed from the queue and
// notified instead. The room that it needs is left free
// until the next step.
//
// A store must call Advance in the same transaction after every step that can
// free the lock: a release, a leave, and any step that finds an expired lease.
// Then no live waiter waits for a free lock.
//
// floor is like Ask.Floor, for the first of the leases.
func Advance(r Record, floor fence.Token, now clock.Instant) (Record, []Turn) {
	r = Expire(r, now)
	var turns []Turn
	room := r.room()
	for next := 0; next < len(r.Queue); {
		p := r.Queue[next]
		if p.Exact && !r.free(p.Slots, p.Weight) {
			next++
			continue
		}
		if p.Weight > room {
			break
		}
		room -= p.Weight
		t := Turn{Owner: p.Owner}
		if p.Barge {
			r.Queue = without(r.Queue, next)
		} else {
			h := Hold{Owner: p.Owner, Meta: p.Meta, Weight: p.Weight, Expiry: p.Expiry, Granted: now, Made: p.Attempt}
			r, h = r.enter(h, p.Numbered, p.Slots, floor)
			t.Token, t.Slots, t.ExpiresIn = h.Token, h.Slots, h.Expiry.Sub(now)
		}
		turns = append(turns, t)
	}
	return r, turns
}
