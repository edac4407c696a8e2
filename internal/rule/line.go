package rule

import (
	"slices"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Leave gives up the owner's place in the line. An owner without one is
// NotHeld. A lease the owner may have is not touched.
func Leave(r Record, owner string, now clock.Instant) (Record, Answer) {
	r = Expire(r, now)
	i := r.place(owner)
	if i < 0 {
		return r, Answer{Verdict: NotHeld}
	}
	r.Line = without(r.Line, i)
	return r, Answer{Verdict: Done}
}

// wait leaves a place at the end of the line, or refreshes the one there is.
func (r Record) wait(a Ask, now clock.Instant) Record {
	p := Place{Owner: a.Owner, Meta: a.Meta, Weight: a.Weight, Expiry: after(now, a.Wait)}
	i := r.place(a.Owner)
	if i < 0 {
		r.Line = with(r.Line, p)
		return r
	}
	p.Expiry = max(p.Expiry, r.Line[i].Expiry)
	r.Line = replaced(r.Line, i, p)
	return r
}

// place is the index of the owner's place, or -1.
func (r Record) place(owner string) int {
	return slices.IndexFunc(r.Line, func(p Place) bool { return p.Owner == owner })
}
