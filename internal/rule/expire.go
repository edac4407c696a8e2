package rule

import (
	"math"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Expire drops the leases, places and tombstones whose time is over. Every
// other step begins with it, so calling it is only needed to look at a record.
func Expire(r Record, now clock.Instant) Record {
	r.Holds = living(r.Holds, func(h Hold) bool { return now < h.Expiry })
	r.Line = living(r.Line, func(p Place) bool { return now < p.Expiry })
	r.Tombs = living(r.Tombs, func(t Tomb) bool { return now < t.Expiry })
	return r
}

// Idle says whether nothing is left in r but the last token: a store that
// keeps tokens from going back by Ask.Floor may then forget the record.
func (r Record) Idle() bool { return r.unused() && len(r.Tombs) == 0 }

// unused says whether nobody holds or waits for the lock: it may then become
// one of another kind.
func (r Record) unused() bool { return len(r.Holds) == 0 && len(r.Line) == 0 }

// hold is the index of the owner's lease, or -1.
func (r Record) hold(owner string) int {
	return slices.IndexFunc(r.Holds, func(h Hold) bool { return h.Owner == owner })
}

// after is now+d, or the last instant there is when that is further away: a
// TTL of centuries must not wrap round to one that is over.
func after(now clock.Instant, d time.Duration) clock.Instant {
	if t := now.Add(d); d < 0 || t >= now {
		return t
	}
	return math.MaxInt64
}
