// Package clock measures elapsed time on this machine, not the time of day. Every
// deadline in the project is an Instant of one Clock, so a stepped wall clock
// changes none of them.
package clock

import (
	"math"
	"time"
)

// Instant is a moment on one Clock, in nanoseconds since that clock's own epoch.
// Only differences between Instants of the same clock have a meaning. The zero
// Instant means "never set".
type Instant int64

// Add returns the instant d later, or the last possible one on overflow: a d of
// centuries, by which some callers mean "for ever", must not give an instant in
// the past.
func (i Instant) Add(d time.Duration) Instant {
	if t := i + Instant(d); d < 0 || t >= i {
		return t
	}
	return math.MaxInt64
}

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// Clock reads elapsed time. Implementations are safe for concurrent use, never go
// back and never block.
type Clock interface {
	Now() Instant
}

// Func turns a function into a Clock. Tests and simulators use it to control
// time.
type Func func() Instant

// Now implements Clock.
func (f Func) Now() Instant { return f() }

// Simulated is the Clock of a simulator. A client that is given one draws nothing from
// chance and asks the machine nothing about time, so that its runs can be repeated.
type Simulated interface {
	Clock
	// Wall is the time of day.
	Wall() time.Time
	// Jitter takes the place of a random part of d.
	Jitter(d time.Duration) time.Duration
	// Rest returns when all other goroutines of the run have come to rest, so that what
	// is done next does not depend on which of them ran first. Of several that call it at
	// one time those with a smaller turn go first.
	Rest(turn int)
}

// System returns the machine's own clock. On Linux it is CLOCK_BOOTTIME, which
// goes on while the machine is suspended. Go's monotonic clock stands still then,
// so a lease would look valid after a resume although its store has long granted
// the lock to another owner. On other systems it is Go's monotonic clock.
func System() Clock { return systemClock{} }

type systemClock struct{}

func (systemClock) Now() Instant { return systemNow() }
