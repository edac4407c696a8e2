package rule

import (
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// ReserveTokens reserves spare+1 further tokens for an owner that holds the lock:
// Answer.Token and the spare tokens after it. They are larger than all earlier
// ones, so that a process can pass its lease from one goroutine to the next and a
// resource refuses the earlier one. The lease keeps its own token and its expiry.
// An owner without a lease, or whose lease was broken, is NotHeld.
//
// floor is like Ask.Floor. A lease with a shared token reserves none; it gets
// the token that it has.
func ReserveTokens(r Record, owner string, spare int, floor fence.Token, now clock.Instant) (Record, Answer) {
	r = Expire(r, now)
	i := r.hold(owner)
	if i < 0 || r.Holds[i].Broken {
		return r, Answer{Verdict: NotHeld}
	}
	h := r.Holds[i]
	r, first := r.reserve(h.Weight, spare, floor)
	return r, Answer{Verdict: Done, Token: first, Spare: int(r.Token - first), Count: h.Count, ExpiresIn: h.Expiry.Sub(now)}
}

// reserve takes the next token, and spare tokens after it. The first reader's token
// is larger than that of the writer before it, which a resource must refuse from
// then on. A shared grant beside others leaves the token unchanged even if the floor
// has risen: two readers hold the lock together, and neither may look stale beside
// the other.
func (r Record) reserve(weight int64, spare int, floor fence.Token) (Record, fence.Token) {
	if r.Spec.Shared && weight < r.Spec.Limit {
		if len(r.Holds) > 0 {
			return r, r.Token
		}
		spare = 0
	}
	first := max(r.Token+1, floor)
	r.Token = first + fence.Token(spare)
	return r, first
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
