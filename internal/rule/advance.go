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
	// ExpiresIn is how long the lease lasts unless it is renewed.
	ExpiresIn time.Duration
}

// Advance hands the lock to waiters: as many from the head of the queue as there
// is room for together. Each lease lasts as long as the place would have, because
// its owner does not know of it yet and cannot count on more. A barging waiter is
// removed from the queue and notified instead. The room that it needs is left free
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
	for len(r.Line) > 0 && r.Line[0].Weight <= room {
		p := r.Line[0]
		room -= p.Weight
		t := Turn{Owner: p.Owner}
		if p.Barge {
			r.Line = without(r.Line, 0)
		} else {
			h := Hold{Owner: p.Owner, Meta: p.Meta, Weight: p.Weight, Expiry: p.Expiry, Granted: now, Made: p.Attempt}
			r, h = r.enter(h, p.Spare, floor)
			t.Token, t.ExpiresIn = h.Token, h.Expiry.Sub(now)
		}
		turns = append(turns, t)
	}
	return r, turns
}
