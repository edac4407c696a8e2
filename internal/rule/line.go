package rule

import (
	"slices"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Leave ends the owner's wait. It removes the owner's place or, if the lock was
// already handed to the owner, its lease, however often entered. An owner with
// neither is NotHeld.
func Leave(r Record, owner string, now clock.Instant) (Record, Answer) {
	r = Expire(r, now)
	if i := r.hold(owner); i >= 0 {
		ans := Answer{Verdict: Done, Token: r.Holds[i].Token}
		r.Holds = without(r.Holds, i)
		return r, ans
	}
	i := r.place(owner)
	if i < 0 {
		return r, Answer{Verdict: NotHeld}
	}
	r.Line = without(r.Line, i)
	return r, Answer{Verdict: Done}
}

// wait adds a place at the end of the queue, or refreshes the owner's place.
func (r Record) wait(a Ask, now clock.Instant) Record {
	p := Place{Owner: a.Owner, Meta: a.Meta, Weight: a.Weight, Expiry: after(now, a.Wait), Spare: a.Spare, Barge: !a.Fair, Attempt: a.Attempt}
	i := r.place(a.Owner)
	if i < 0 {
		r.Line = with(r.Line, p)
		return r
	}
	p.Expiry = max(p.Expiry, r.Line[i].Expiry)
	r.Line = replaced(r.Line, i, p)
	return r
}

// place returns the index of the owner's place, or -1.
func (r Record) place(owner string) int {
	return slices.IndexFunc(r.Line, func(p Place) bool { return p.Owner == owner })
}
