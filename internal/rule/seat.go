package rule

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Over several nodes no node knows how many permits are held, and a node without a lease of
// the lock would go on with an earlier number of permits. So the number changes in two
// phases, each of which all nodes answer: a resize takes the seat at every node, and then
// every node sets the number. internal/proof/resize says why that is enough, and searches
// for what could break it.

// TakeSeat gives s the seat for ttl, and takes it from the resize before. A lock that is in
// use as neither s.From nor s.To is a Mismatch.
func TakeSeat(r Record, s Seat, ttl time.Duration, now clock.Instant) (Record, Answer) {
	r = Expire(r, now)
	if !r.isEither(s) {
		return r, r.mismatch("", now)
	}
	s.Expiry = after(now, ttl)
	r.Seat = &s
	return r, Answer{Verdict: Done}
}

// SetNumber sets the number of permits to s.To, and keeps it for the time keep, even if
// nobody uses the lock. Leases and waiters fare as with Resize. Without the seat the answer
// is NotHeld, and a lock that is in use as neither s.From nor s.To is a Mismatch. The seat
// stays taken for ttl; see Numbers.
func SetNumber(r Record, s Seat, ttl, keep time.Duration, now clock.Instant) (Record, Answer) {
	r = Expire(r, now)
	switch {
	case r.Seat == nil || r.Seat.Who != s.Who:
		return r, Answer{Verdict: NotHeld}
	case !r.isEither(s):
		return r, r.mismatch("", now)
	}
	r = r.resized(s.To)
	taken := *r.Seat
	taken.HasSet, taken.Expiry = true, after(now, ttl)
	r.Seat = &taken
	r.KeptUntil = max(r.KeptUntil, after(now, keep))
	return r, Answer{Verdict: Done}
}

// isEither reports whether the lock can be resized by s.
func (r Record) isEither(s Seat) bool { return r.unused() || r.Spec == s.From || r.Spec == s.To }

// Numbers are the numbers of permits that a node has for the renewal of a lease: its own and,
// for the time of its seat after a resize has set that, the one before. Zero is none. A
// renewal counts only nodes that have a number in common.
type Numbers struct{ Own, Before int64 }

// NumbersOf returns the numbers of a lock. One whose permits have no slots has none.
func NumbersOf(r Record, now clock.Instant) (n Numbers) {
	r = Expire(r, now)
	if r.Spec.HasSlots() {
		n.Own = r.Spec.Limit
	}
	if r.Seat != nil && r.Seat.HasSet {
		n.Before = r.Seat.From.Limit
	}
	return n
}

// Have reports whether number is among n. None is, if the lock has none.
func (n Numbers) Have(number int64) bool {
	return number == n.Own || number > 0 && number == n.Before
}
