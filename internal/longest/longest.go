// Package longest keeps how long the leases in a store may last, as far as a client knows. A
// store that may have dropped leases grants nothing for as long as the longest of them.
package longest

import (
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Least is the TTL that every client allows for. A longer one is recorded in the store before it is
// asked for.
const Least = time.Minute

// most keeps sums with a record that anybody has made from overflowing.
const most = 100 * 365 * 24 * time.Hour

// TTL is the longest TTL that a client knows of. It is safe for concurrent use.
type TTL struct {
	max      time.Duration // that the client accepts; 0: any
	recorded atomic.Int64  // in the store, when it was read last
	known    atomic.Int64  // the longest that ever was
	read     atomic.Int64  // when it was asked for last
}

// New returns the TTL of a client that accepts TTLs up to max, or any if that is zero.
func New(max time.Duration) *TTL { return &TTL{max: max} }

// Covers reports whether all clients allow for leases of ttl.
func (t *TTL) Covers(ttl time.Duration) bool {
	return min(ttl, most) <= max(Least, time.Duration(t.recorded.Load()))
}

// Note takes what is recorded in the store, which was asked for at asked.
func (t *TTL) Note(recorded time.Duration, asked clock.Instant) {
	recorded = min(recorded, most)
	t.recorded.Store(int64(recorded))
	raise(&t.known, int64(recorded))
	raise(&t.read, int64(asked))
}

func raise(a *atomic.Int64, to int64) {
	for {
		is := a.Load()
		if is >= to || a.CompareAndSwap(is, to) {
			return
		}
	}
}

// Unread reports whether the record was not read since then.
func (t *TTL) Unread(since clock.Instant) bool { return clock.Instant(t.read.Load()) < since }

// Since returns for how long after since leases from before it may last. As long as the record
// was not read again, that is a second more than has passed at now.
func (t *TTL) Since(since, now clock.Instant) time.Duration {
	d := min(t.max, most)
	if d == 0 {
		d = Least
	}
	d = max(d, time.Duration(t.known.Load()))
	if t.Unread(since) {
		d = max(d, now.Sub(since)+time.Second)
	}
	return d
}
