package waitq

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// trouble is since when the store has given no answer at all; 0 while it answers.
type trouble clock.Instant

// note records the reason that the store has given. It reports whether the trouble begins with
// it.
func (t *trouble) note(why Reason, now clock.Instant) (began bool) {
	if why != NoAnswer {
		*t = 0
	} else if *t == 0 {
		*t, began = trouble(now), true
	}
	return began
}

// left returns how much of its patience a waiter has left at now, if it joined at joined.
func (t trouble) left(joined clock.Instant, ttl time.Duration, now clock.Instant) time.Duration {
	return max(clock.Instant(t), joined).Add(ttl).Sub(now)
}
