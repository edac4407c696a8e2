package resize

import (
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold/internal/rule"
)

// A node does what internal/rule says. A mechanism is switched off by what is changed before a
// step, or after it.

// spec is the kind of a semaphore with so many permits.
func spec(permits uint8) rule.Spec { return rule.Semaphore(int64(permits)) }

// semaphore is what a node keeps.
type semaphore struct {
	rule.Record
	setter uint8 // for the judge: the resize that set the number, plus one
}

// seat is the right to change the number of permits.
type seat struct {
	who      uint8 // the resize, plus one; 0: there is none
	from, to uint8
	hasSet   bool
}

// rule returns the seat as the rule has it.
func (s seat) rule() rule.Seat {
	return rule.Seat{Who: strconv.Itoa(int(s.who)), From: spec(s.from), To: spec(s.to), HasSet: s.hasSet}
}

// unused reports whether the node has no number.
func (s *semaphore) unused() bool { return len(s.Holds) == 0 && now >= s.KeptUntil }

// takeSeat gives a resize the seat.
func (s *semaphore) takeSeat(by seat, ttl time.Duration) bool {
	r, ans := rule.TakeSeat(s.Record, by.rule(), ttl, now)
	s.Record = r
	return ans.Verdict == rule.Done
}

// set sets the number for a resize.
func (s *semaphore) set(by seat, ttl, keep time.Duration, off Off) bool {
	before := s.Record
	if off.Seat {
		taken := by.rule()
		taken.Expiry = now.Add(keep)
		s.Seat = &taken
	}
	r, ans := rule.SetNumber(s.Record, by.rule(), ttl, keep, now)
	if s.Record = r; off.Seat {
		s.Seat = before.Seat
	}
	if off.Kept {
		s.KeptUntil = before.KeptUntil
	}
	if ans.Verdict != rule.Done {
		return false
	}
	s.setter = by.who
	return true
}

// admit admits an owner that asks for one of so many permits.
func (s *semaphore) admit(a rule.Ask, permits uint8, off Off) rule.Answer {
	a.Spec, a.Numbered = spec(permits), true
	if s.unused() {
		s.setter = 0
	}
	fit, extra := s.split()
	r := s.Record
	switch {
	case off.Fits:
		r.Holds = fit
	case off.Healed && a.Exact && len(extra) == 0 && (s.unused() || s.Spec == a.Spec):
		a.Spec.Limit = rule.MaxSlots
		r.Spec = a.Spec
	}
	r, ans := rule.Admit(r, a, now)
	if off.Fits {
		r.Holds = append(r.Holds, extra...)
	}
	if r.Spec.Limit == rule.MaxSlots {
		r.Spec = spec(permits)
	}
	s.Record = r
	return ans
}

// split returns the leases whose slots there are permits for, and the others.
func (s *semaphore) split() (fit, extra []rule.Hold) {
	for _, h := range s.Holds {
		if s.Spec.Has(h.Slots, h.Weight) {
			fit = append(fit, h)
		} else {
			extra = append(extra, h)
		}
	}
	return fit, extra
}

// renew renews a lease, and returns the node's number, and those (a bit each) that it has for
// renewals.
func (s *semaphore) renew(owner string, slots rule.Slots, ttl time.Duration, off Off) (own, numbers uint8, ok bool) {
	s.Record = rule.DropOthers(s.Record, owner, slots, now)
	r, ans := rule.Renew(s.Record, owner, ttl, now)
	if s.Record = r; ans.Verdict != rule.Done {
		return 0, 0, false
	}
	has := rule.NumbersOf(s.Record, now)
	if off.Joint {
		has = rule.Numbers{Own: has.Own}
	}
	for n := range uint8(8) {
		if n > 0 && has.Have(int64(n)) {
			numbers |= 1 << n
		}
	}
	if off.Taken && s.Seat != nil {
		numbers |= 1<<s.Seat.From.Limit | 1<<s.Seat.To.Limit
	}
	return uint8(has.Own), numbers, true
}
