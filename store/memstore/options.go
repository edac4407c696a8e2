package memstore

import "github.com/leasehold-dev/leasehold/clock"

// Options configure a Store. Only tests need other than the zero value.
type Options struct {
	// Clock counts the TTLs; see package clock. Nil means the machine's own.
	Clock clock.Clock
}
