package driver

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// suspendCheck is how often a process with waiters checks whether its machine was suspended.
// On Linux timers stand still meanwhile, but places end: without the check, a waiter would
// refresh a place that has ended as late as if no time had passed. Most of what an idle waiter
// costs its machine is this check; see docs/performance/limits.md.
const suspendCheck = time.Second

// suspendWatch compares the clock, which counts suspend, with a timer, which does not. It
// runs while anybody waits. The mutex of the waiters guards it.
type suspendWatch struct {
	running bool
	readAt  clock.Instant
}

// begin begins to watch, unless that is done already: check is called after a while, and has
// to call checked.
func (s *suspendWatch) begin(now clock.Instant, check func()) {
	if !s.running {
		s.goOn(now, check)
	}
}

func (s *suspendWatch) goOn(now clock.Instant, check func()) {
	s.running, s.readAt = true, now
	time.AfterFunc(suspendCheck, check)
}

// checked reports whether the machine was suspended since the last reading. It goes on if
// anybody still waits.
func (s *suspendWatch) checked(now clock.Instant, waiting bool, check func()) (suspended bool) {
	suspended = now.Sub(s.readAt) > 2*suspendCheck
	if s.running = waiting; waiting {
		s.goOn(now, check)
	}
	return suspended
}
