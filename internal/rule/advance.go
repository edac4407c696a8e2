package rule

import (
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Turn is what became of a place whose turn has come.
type Turn struct {
	Owner string
	// Token is that of the lease it was handed. Zero: it was told that there is
	// room for it, and nothing else.
	Token fence.Token
	// ExpiresIn is how long the lease lasts unless it is renewed.
	ExpiresIn time.Duration
}

// Advance hands the lock to those who wait for it: from the head of the line on,
// as many as there is room for together. Each lease lasts as long as the place
// that it comes of would have: that is all its owner, who does not know of it
// yet, can count on. A place that barges is taken out of the line and told; the
// room that it needs is left to it, until the next step.
//
// It is to follow every step that can free something, in the same transaction:
// a release, a leave, and any step that comes upon a lease which has expired.
// Where a store does so, nobody who is alive waits for a lock that is free.
//
// floor is as Ask.Floor, for the first of the leases.
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
			h := Hold{Owner: p.Owner, Meta: p.Meta, Weight: p.Weight, Expiry: p.Expiry}
			r, h = r.enter(h, p.Spare, floor)
			t.Token, t.ExpiresIn = h.Token, h.Expiry.Sub(now)
		}
		turns = append(turns, t)
	}
	return r, turns
}
