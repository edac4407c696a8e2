// Package validity holds the one formula that says how long a holder may trust
// a lease. It is Redlock's: TTL - (time since just before the request was
// sent) - drift.
package validity

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Drift is the margin for clocks that run at different speeds: 1 % of the TTL,
// plus 2 ms for the precision with which a store expires keys.
func Drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// Until returns the end of the validity of a lease. start is a clock reading from
// before the first byte of the request was sent.
func Until(start clock.Instant, ttl time.Duration) clock.Instant {
	return start.Add(ttl - Drift(ttl))
}

// RenewAfter is how long after a request for a lease of this TTL the next one
// leaves: a third of the TTL, so that the lease outlives two requests in a row
// that fail. It is also how often a waiter refreshes its place in a store's queue,
// and how long a request about a lease may take, since the next one is due then.
func RenewAfter(ttl time.Duration) time.Duration { return ttl / 3 }
