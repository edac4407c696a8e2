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
	r.Queue = without(r.Queue, i)
	return r, Answer{Verdict: Done}
}

// wait adds a place at the end of the queue, or where its ticket says, or refreshes the
// owner's place.
func (r Record) wait(a Ask, now clock.Instant) Record {
	p := Place{Owner: a.Owner, Meta: a.Meta, Weight: a.Weight, Expiry: after(now, a.Wait), Barge: !a.Fair, Attempt: a.Attempt, Numbered: a.Numbered, Slots: a.Slots, Exact: a.Exact, Ticket: a.Ticket}
	i := r.place(a.Owner)
	if i < 0 {
		r.Queue = slices.Insert(slices.Clone(r.Queue), r.position(a), p)
		return r
	}
	p.Ticket = r.Queue[i].Ticket
	p.Expiry = max(p.Expiry, r.Queue[i].Expiry)
	r.Queue = replaced(r.Queue, i, p)
	return r
}

// place returns the index of the owner's place, or -1.
func (r Record) place(owner string) int {
	return slices.IndexFunc(r.Queue, func(p Place) bool { return p.Owner == owner })
}

// position returns how many places are ahead of the owner's, or of the one that it would
// have.
func (r Record) position(a Ask) int {
	if i := r.place(a.Owner); i >= 0 {
		return i
	}
	if i := slices.IndexFunc(r.Queue, func(p Place) bool { return p.Ticket > a.Ticket }); i >= 0 {
		return i
	}
	return len(r.Queue)
}
