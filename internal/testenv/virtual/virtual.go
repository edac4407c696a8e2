// Package virtual has the clock of tests in a synctest bubble, whose time is Go's.
//
// In a bubble, a timer of no duration runs at once, within the call that sets it, and two that do so
// at the same time end the race detector with a failed check of its own (golang/go#78156). So code
// that such tests run sets a timer that is due for a nanosecond.
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
