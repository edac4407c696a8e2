// Package clock measures elapsed time on this machine, not the time of day. Every
// deadline in the project is an Instant of one Clock, so a stepped wall clock
// changes none of them.
package clock

import (
	"time"

	public "github.com/leasehold-dev/leasehold/clock"
)

type (
	// Instant is a moment on one Clock.
	Instant = public.Instant
	// Clock reads elapsed time. Tests and simulators have others than System.
	Clock = public.Clock
	// Func turns a function into a Clock.
	Func = public.Func
)

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
