package rule

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Release ends the owner's lease. If it was entered several times, Release counts
// one down, and Answer.Count is what remains.
//
// An owner without a lease is NotHeld. It loses its place in the line, as nobody
// waits there any more and the lock would be handed to it for nothing. If tomb is
// positive, the owner is also refused for that long. A client uses this to take
// back a request whose outcome it does not know and that may yet arrive.
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

// bury adds a tombstone for owner.
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
