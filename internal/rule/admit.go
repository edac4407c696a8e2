package rule

import (
	"cmp"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Ask is one request to be admitted. The caller has checked that Owner is not
// empty and TTL is positive.
type Ask struct {
	// Spec is the lock's kind as this owner understands it.
	Spec  Spec
	Owner string
	// Attempt tells several attempts of one owner apart; see store.Lease. It is
	// empty if the owner makes one attempt only.
	Attempt string
	Meta    string
	// Weight is how much of the limit the owner wants. Zero means 1.
	Weight int64
	TTL    time.Duration
	// Reenter makes a further ask of an owner that already holds the lock count:
	// the owner must then release it as often as it was admitted. Without it, the
	// ask is treated as a repetition of the same request, and one release ends
	// the lease.
	Reenter bool
	// Fair makes the owner wait for all owners before it in the queue. Without it
	// the owner barges: it takes what is free now.
	Fair bool
	// Wait, if positive, adds a place at the end of the queue if the lock is busy,
	// or refreshes the owner's place, for at least this long. A refreshed place
	// keeps its position. See Advance.
	Wait time.Duration
	// Numbered gives a lease of a semaphore as many slots as its weight, and not just
	// one; see Slots. It is set by a node of several.
	Numbered bool
	// Slots, with Numbered, are the slots that the owner wants, as many as its weight.
	// It gets others if they are taken, unless Exact is set. Empty: any.
	//
	// With Exact the owner gets these or none, even if others wait: they were granted to it
	// on other nodes. A lease of its own with other slots ends, also if these are taken,
	// so that two owners that crossed each other on two nodes do not wait for each
	// other. The store must call Advance afterwards.
	Slots Slots
	Exact bool
	// Ticket, of several nodes, orders the queue: a new place is ahead of those with a
	// larger ticket. Zero in a store with one queue, whose order is that of arrival.
	Ticket uint64
	// Floor is the smallest token that a grant may have. A store that can forget
	// a record, and its last token with it, passes a value that never goes back,
	// such as its clock in microseconds.
	Floor fence.Token
}

// Admit decides whether a.Owner gets the lock.
func Admit(r Record, a Ask, now clock.Instant) (Record, Answer) {
	r = Expire(r, now)
	if a.Weight == 0 {
		a.Weight = 1
	}
	switch {
	case r.buried(attemptOf(a.Owner, a.Attempt)):
		return r, Answer{Verdict: Buried}
	case !r.unused() && r.Spec != a.Spec:
		return r, r.mismatch(a.Owner, now)
	case a.Weight < 1 || a.Weight > a.Spec.Limit, a.Exact && !(a.Numbered && a.Spec.Has(a.Slots, a.Weight)):
		return r, Answer{Verdict: Mismatch, Spec: a.Spec}
	}
	if a.Exact {
		r = DropOthers(r, a.Owner, a.Slots, now)
	}
	if i := r.hold(a.Owner); i >= 0 {
		return r.again(i, a, now)
	}
	r.Spec = a.Spec
	if ahead := r.ahead(a); !fits(a.Weight, r.room(), ahead) || a.Exact && !r.free(a.Slots, a.Weight) {
		if a.Wait > 0 {
			r = r.wait(a, now)
		}
		return r, r.busy(a, ahead, now)
	}
	return r.grant(a, now)
}

// grant makes a new lease.
func (r Record) grant(a Ask, now clock.Instant) (Record, Answer) {
	h := Hold{Owner: a.Owner, Meta: a.Meta, Weight: a.Weight, Expiry: after(now, a.TTL), Granted: now, Made: a.Attempt}
	r, h = r.enter(h, a.Numbered, a.Slots, a.Floor)
	return r, Answer{Verdict: Granted, Token: h.Token, Slot: h.Slot, Slots: h.Slots, Count: h.Count, ExpiresIn: h.Expiry.Sub(now)}
}

// enter adds h with a new token, and removes the owner's place in the queue. The lease
// has the slots that the owner wants, if they are free.
func (r Record) enter(h Hold, numbered bool, want Slots, floor fence.Token) (Record, Hold) {
	h.Count, r.Was = 1, 0 // the leases fit, if there is room for one more
	h = r.withSlots(h, numbered, want)
	r = r.draw(h.Weight, floor)
	h.Token = r.Token
	r.Queue = without(r.Queue, r.place(h.Owner))
	r.Holds = with(r.Holds, h)
	return r, h
}

// again answers an owner that already holds the lock. Its token stays the same,
// and its expiry never moves back.
func (r Record) again(i int, a Ask, now clock.Instant) (Record, Answer) {
	h := r.Holds[i]
	if h.Broken {
		return r, Answer{Verdict: Buried}
	}
	if a.Weight > h.Weight {
		return r, Answer{Verdict: Mismatch, Spec: r.Spec, Blocker: h.blocker(), ExpiresIn: h.Expiry.Sub(now)}
	}
	if a.Reenter {
		h.Count++
	}
	if a.Attempt != "" && a.Attempt != h.Made {
		h.Made = ""
	}
	h.Expiry = max(h.Expiry, after(now, a.TTL))
	r.Holds = replaced(r.Holds, i, h)
	return r, Answer{Verdict: Granted, Again: true, Token: h.Token, Slot: h.Slot, Slots: h.Slots, Count: h.Count, ExpiresIn: h.Expiry.Sub(now)}
}

// room returns the part of the limit that the leases leave.
func (r Record) room() int64 {
	room := r.Spec.Limit
	for _, h := range r.Holds {
		room -= h.Weight
	}
	return room
}

// ahead returns the waiters for which a fair ask must leave room: all that came
// before it. In a mutex, only the head of the queue is thus admitted. In a
// semaphore or among readers, as many from the head as fit together are.
func (r Record) ahead(a Ask) []Place {
	if !a.Fair || a.Exact {
		return nil
	}
	before := r.Queue[:r.position(a)]
	if !r.Spec.HasSlots() {
		return before
	}
	return living(before, func(p Place) bool { return !p.Exact || r.free(p.Slots, p.Weight) })
}

// fits reports whether weight fits into room after everybody in ahead was
// admitted. It counts down, so that weights near the maximum of int64 do not
// overflow.
func fits(weight, room int64, ahead []Place) bool {
	for _, p := range ahead {
		if p.Weight > room {
			return false
		}
		room -= p.Weight
	}
	return weight <= room
}

// busy names the blocker: a holder if the leases alone leave no room, or have the slots
// that the owner must have, and otherwise a waiter ahead in the queue.
func (r Record) busy(a Ask, ahead []Place, now clock.Instant) Answer {
	holds := r.Holds
	switch {
	case a.Weight > r.room():
	case a.Exact:
		holds = living(holds, func(h Hold) bool { return !(Record{Spec: r.Spec, Holds: []Hold{h}}).free(a.Slots, a.Weight) })
	default:
		holds = nil
	}
	ans := blocked(holds, ahead, now)
	ans.Verdict = Busy
	ans.Position = r.place(a.Owner) + 1
	return ans
}

// mismatch names an owner that uses the lock as another kind.
func (r Record) mismatch(owner string, now clock.Instant) Answer {
	ans := blocked(r.Holds, r.Queue, now)
	ans.Verdict, ans.Spec = Mismatch, r.Spec
	ans.Position = r.place(owner) + 1
	return ans
}

// blocked returns the lease that ends first or, if no lease is in the way, the
// place that does.
func blocked(holds []Hold, queue []Place, now clock.Instant) Answer {
	if len(holds) > 0 {
		h := slices.MinFunc(holds, func(a, b Hold) int { return cmp.Compare(a.Expiry, b.Expiry) })
		return Answer{Blocker: h.blocker(), ExpiresIn: h.Expiry.Sub(now)}
	}
	if len(queue) == 0 {
		return Answer{}
	}
	p := slices.MinFunc(queue, func(a, b Place) int { return cmp.Compare(a.Expiry, b.Expiry) })
	return Answer{Blocker: Blocker{Owner: p.Owner, Meta: p.Meta, Waiting: true}, ExpiresIn: p.Expiry.Sub(now)}
}

func (h Hold) blocker() Blocker { return Blocker{Owner: h.Owner, Meta: h.Meta} }
