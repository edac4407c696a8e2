// Package virtual has the clock of tests in a synctest bubble, whose time is Go's.
package virtual

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Clock returns a clock that starts now and follows the time of the bubble. Outside of a bubble
// it follows Go's monotonic clock.
func Clock() clock.Clock {
	began := time.Now()
	return clock.Func(func() clock.Instant { return clock.Instant(time.Since(began)) + 1 })
}
