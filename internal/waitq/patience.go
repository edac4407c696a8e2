package waitq

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// trouble is since when the store has given no answer at all; 0 while it answers.
type trouble clock.Instant

// note takes account of what the store has said.
func (t *trouble) note(why Reason, now clock.Instant) {
	if why != NoAnswer {
		*t = 0
	} else if *t == 0 {
		*t = trouble(now)
	}
}

// left returns how much remains at now of the patience of a waiter that has joined then.
func (t trouble) left(joined clock.Instant, ttl time.Duration, now clock.Instant) time.Duration {
	return max(clock.Instant(t), joined).Add(ttl).Sub(now)
}
