// Package clock tells how much time has passed on this machine, and nothing
// about what time of day it is. Every deadline in the project is an Instant of
// one Clock, so a stepped wall clock changes none of them.
package clock

import (
	"math"
	"time"
)

// Instant is a moment on one Clock, in nanoseconds since that clock's own
// epoch. Only differences of Instants of the same clock mean anything. The
// zero Instant is used as "never set".
type Instant int64

// Add returns the instant d later, or the last one there is: centuries, which
// is how some people write "for ever", must not come out as long ago.
func (i Instant) Add(d time.Duration) Instant {
	if t := i + Instant(d); d < 0 || t >= i {
		return t
	}
	return math.MaxInt64
}

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// Clock reads the time that has passed. Implementations are safe for
// concurrent use, never go back, and never block.
type Clock interface {
	Now() Instant
}

// Func makes a Clock of a function; tests and simulators inject time with it.
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

// System is the machine's own clock. On Linux it is CLOCK_BOOTTIME, which goes
// on counting while the machine is suspended: Go's monotonic clock stands
// still then, and a lease would look valid after resume although its store has
// long given it to somebody else. Elsewhere it is Go's monotonic clock.
func System() Clock { return systemClock{} }

type systemClock struct{}

func (systemClock) Now() Instant { return systemNow() }
