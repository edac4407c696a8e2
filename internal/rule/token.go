package rule

import (
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// draw takes the next token. The first reader's token
// is larger than that of the writer before it, which a resource must refuse from
// then on. A shared grant beside others leaves the token unchanged even if the floor
// has risen: two readers hold the lock together, and neither may look stale beside
// the other.
func (r Record) draw(weight int64, floor fence.Token) Record {
	if !r.Spec.Shared || weight >= r.Spec.Limit || len(r.Holds) == 0 {
		r.Token = max(r.Token+1, floor)
	}
	return r
}

// ConfirmToken makes every later token larger than token, if the owner has a lease with
// these slots; empty slots are those of any lease. Over several nodes the token of a grant
// is the largest of their answers, and they confirm it. Readers that join the owner share
// it.
func ConfirmToken(r Record, owner string, s Slots, token fence.Token, now clock.Instant) (Record, Answer) {
	r = Expire(r, now)
	i := r.hold(owner)
	if i < 0 || r.Holds[i].Broken || s != "" && r.Holds[i].Slots != s {
		return r, Answer{Verdict: NotHeld}
	}
	h := r.Holds[i]
	r.Token, h.Token = max(r.Token, token), max(h.Token, token)
	r.Holds = replaced(r.Holds, i, h)
	return r, Answer{Verdict: Done, Token: r.Token, Count: h.Count, ExpiresIn: h.Expiry.Sub(now)}
}
