package resize

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// spec is the kind of a semaphore with so many permits.
func spec(permits uint8) rule.Spec { return rule.Semaphore(int64(permits)) }

// semaphore is what a node keeps: the rule's record, and what resizes need beside it.
type semaphore struct {
	rule.Record
	kept    clock.Instant // until when the number stays though nobody uses the lock
	seat    seat
	seatFor clock.Instant
	setter  uint8 // for the judge: the resize that set the number, plus one
}

// seat is the right to change the number of permits.
type seat struct {
	who      uint8 // the resize, plus one; 0: there is none
	from, to uint8
}

// unused reports whether the node has no number.
func (s *semaphore) unused() bool { return len(s.Holds) == 0 && now >= s.kept }

// takeSeat gives a resize the seat, and takes it from the one before. A lock that is in use by
// neither number is refused.
func (s *semaphore) takeSeat(by seat, ttl time.Duration) bool {
	if !s.unused() && s.Spec != spec(by.from) && s.Spec != spec(by.to) {
		return false
	}
	s.seat, s.seatFor = by, now.Add(ttl)
	return true
}

// set sets the number, if the resize has the seat.
func (s *semaphore) set(by seat, keep time.Duration, off Off) bool {
	if (s.seat != by || now >= s.seatFor) && !off.Seat {
		return false
	}
	s.Spec, s.setter = spec(by.to), by.who
	if !off.Kept {
		s.kept = max(s.kept, now.Add(keep))
	}
	return true
}

// admit is rule.Admit of an owner that asks for one of so many permits.
func (s *semaphore) admit(a rule.Ask, permits uint8, off Off) rule.Answer {
	a.Spec, a.Numbered = spec(permits), true
	switch {
	case s.unused():
		s.setter = 0
	case s.Spec != a.Spec:
		return rule.Answer{Verdict: rule.Mismatch}
	}
	fit, extra := s.split()
	if len(extra) > 0 && !off.Fits {
		return rule.Answer{Verdict: rule.Busy}
	}
	r := s.Record
	if off.Fits {
		r.Holds = fit
	}
	if off.Healed && a.Exact {
		a.Spec.Limit = rule.MaxSlots
		r.Spec = a.Spec
	}
	r, ans := rule.Admit(r, a, now)
	if r.Spec = spec(permits); off.Fits {
		r.Holds = append(r.Holds, extra...)
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

// renew is rule.Renew, and returns the node's number, and those (a bit each) that it has for
// renewals: its own and, while a resize has the seat, both of the resize.
func (s *semaphore) renew(owner string, slots rule.Slots, ttl time.Duration, off Off) (own, numbers uint8, ok bool) {
	s.Record = rule.DropOthers(s.Record, owner, slots, now)
	r, ans := rule.Renew(s.Record, owner, ttl, now)
	if s.Record = r; ans.Verdict != rule.Done {
		return 0, 0, false
	}
	own, numbers = uint8(s.Spec.Limit), 1<<s.Spec.Limit
	if s.seat.who > 0 && now < s.seatFor && !off.Joint {
		numbers |= 1<<s.seat.from | 1<<s.seat.to
	}
	return own, numbers, true
}
