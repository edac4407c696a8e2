package rule

import (
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Draw reserves spare+1 further tokens for an owner that is inside:
// Answer.Token and the spare that follow it. They are above all that were there
// before, so that a process can pass its lease on from one goroutine to the next
// and have the resource refuse the one before. The lease's own token stays, and
// so does its expiry. An owner that is not inside is NotHeld.
//
// floor is as Ask.Floor. A lease that shares its token draws none: it is given
// the one it has.
func Draw(r Record, owner string, spare int, floor fence.Token, now clock.Instant) (Record, Answer) {
	r = Expire(r, now)
	i := r.hold(owner)
	if i < 0 {
		return r, Answer{Verdict: NotHeld}
	}
	h := r.Holds[i]
	r, first := r.draw(h.Weight, spare, floor)
	return r, Answer{Verdict: Done, Token: first, Count: h.Count, ExpiresIn: h.Expiry.Sub(now)}
}

// draw takes the next token, and spare that follow it. Those that are shared
// leave the token alone even when the floor has risen: two readers are inside
// together, and neither may look stale beside the other.
func (r Record) draw(weight int64, spare int, floor fence.Token) (Record, fence.Token) {
	if r.Spec.Shared && weight < r.Spec.Limit {
		if r.Token > 0 {
			return r, r.Token
		}
		spare = 0
	}
	first := max(r.Token+1, floor)
	r.Token = first + fence.Token(spare)
	return r, first
}
