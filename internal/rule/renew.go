package rule

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Renew makes the owner's lease last at least ttl from now, and never shortens
// it: a late or repeated renewal must not take time from a holder. It never
// creates a lease. An owner without one is NotHeld, because another owner may
// have held the lock meanwhile, and so is one whose lease was broken.
func Renew(r Record, owner string, ttl time.Duration, now clock.Instant) (Record, Answer) {
	r = Expire(r, now)
	i := r.hold(owner)
	if i < 0 || r.Holds[i].Broken {
		return r, Answer{Verdict: NotHeld}
	}
	h := r.Holds[i]
	h.Expiry = max(h.Expiry, after(now, ttl))
	r.Holds = replaced(r.Holds, i, h)
	return r, Answer{Verdict: Done, Token: h.Token, Count: h.Count, ExpiresIn: h.Expiry.Sub(now)}
}
