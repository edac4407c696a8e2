package rule

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Renew makes the owner's lease last at least ttl from now, and never less than
// it did: a late or duplicated renewal must not take time away from a holder
// who counts on it. It creates nothing: an owner that is gone is NotHeld, since
// somebody else may have been in meanwhile.
func Renew(r Record, owner string, ttl time.Duration, now clock.Instant) (Record, Answer) {
	r = Expire(r, now)
	i := r.hold(owner)
	if i < 0 {
		return r, Answer{Verdict: NotHeld}
	}
	h := r.Holds[i]
	h.Expiry = max(h.Expiry, after(now, ttl))
	r.Holds = replaced(r.Holds, i, h)
	return r, Answer{Verdict: Done, Token: h.Token, Count: h.Count, ExpiresIn: h.Expiry.Sub(now)}
}
