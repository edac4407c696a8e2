package rule

import (
	"math"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Expire drops leases, places, tombstones and what else has expired. Every other step
// calls it first, so callers need it only to look at a record.
func Expire(r Record, now clock.Instant) Record {
	r.Holds = living(r.Holds, func(h Hold) bool { return now < h.Expiry })
	r.Queue = living(r.Queue, func(p Place) bool { return now < p.Expiry })
	r.Tombstones = living(r.Tombstones, func(t Tombstone) bool { return now < t.Expiry })
	if r.Broken != nil && now >= r.Broken.Expiry {
		r.Broken = nil
	}
	return r
}

// Idle reports whether r has nothing left but the last token. A store that passes
// Ask.Floor may then forget the record.
func (r Record) Idle() bool {
	return r.unused() && len(r.Tombstones) == 0 && r.Broken == nil
}

// unused reports whether nobody holds the lock or waits for it. It may then become a lock of
// another kind.
func (r Record) unused() bool { return len(r.Holds) == 0 && len(r.Queue) == 0 }

// hold returns the index of the owner's lease, or -1.
func (r Record) hold(owner string) int {
	return slices.IndexFunc(r.Holds, func(h Hold) bool { return h.Owner == owner })
}

// after returns now+d, or the last possible instant if that would overflow: a TTL
// of centuries must not wrap round into the past.
func after(now clock.Instant, d time.Duration) clock.Instant {
	if t := now.Add(d); d < 0 || t >= now {
		return t
	}
	return math.MaxInt64
}
