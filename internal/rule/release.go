package rule

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Release ends the owner's lease, or, if it was entered several times, counts
// one down (Answer.Count is what remains).
//
// An owner that has none is NotHeld, and loses its place in the line: nobody
// stands in it any more, and it would be handed the lock for nothing. With
// tomb > 0 the owner is then kept from being admitted for that long: this is how
// a client takes back an ask whose outcome it does not know and that may yet
// arrive.
func Release(r Record, owner string, tomb time.Duration, now clock.Instant) (Record, Answer) {
	r = Expire(r, now)
	i := r.hold(owner)
	if i < 0 {
		r.Line = without(r.Line, r.place(owner))
		if tomb > 0 {
			r = r.bury(owner, tomb, now)
		}
		return r, Answer{Verdict: NotHeld}
	}
	h := r.Holds[i]
	h.Count--
	if h.Count > 0 {
		r.Holds = replaced(r.Holds, i, h)
		return r, Answer{Verdict: Done, Token: h.Token, Count: h.Count, ExpiresIn: h.Expiry.Sub(now)}
	}
	r.Holds = without(r.Holds, i)
	return r, Answer{Verdict: Done, Token: h.Token}
}

// bury leaves a tombstone.
func (r Record) bury(owner string, tomb time.Duration, now clock.Instant) Record {
	t := Tomb{Owner: owner, Expiry: after(now, tomb)}
	i := slices.IndexFunc(r.Tombs, func(t Tomb) bool { return t.Owner == owner })
	if i < 0 {
		r.Tombs = with(r.Tombs, t)
		return r
	}
	t.Expiry = max(t.Expiry, r.Tombs[i].Expiry)
	r.Tombs = replaced(r.Tombs, i, t)
	return r
}

func (r Record) buried(owner string) bool {
	return slices.ContainsFunc(r.Tombs, func(t Tomb) bool { return t.Owner == owner })
}
