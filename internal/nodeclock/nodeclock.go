// Package nodeclock detects jumps of a node's clock. After a jump ahead, leases expire
// earlier than their holders expect.
package nodeclock

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// slack is the tolerated error of a node's reading: a node reads its clock before it runs
// the command, and with a limited resolution.
const slack = 2 * time.Millisecond

// rate is the reciprocal of the difference in speed that the drift allowance covers.
const rate = 100

// Watch compares one node's clock with ours. The zero Watch has no observations.
// It is not safe for concurrent use.
type Watch struct {
	seen      bool
	at        clock.Instant
	low, high time.Duration // bounds on how far the node's clock was ahead of ours then
}

// Jump bounds how far a node's clock has jumped: positive ahead, negative back. The true
// jump lies between Least and Most; Least is nearer to zero. The zero Jump means that the
// clock has not jumped.
type Jump struct{ Least, Most time.Duration }

// Observe records that a node's clock read node at some time between sent and received on
// our clock. It returns the jump that must have happened since earlier observations. Later
// observations are compared with this one.
func (w *Watch) Observe(sent, received, node clock.Instant) (j Jump) {
	// The bounds are those at received. A clock that was read long before has drifted since.
	low, high := node.Sub(received)-slack, node.Sub(sent)+slack+max(0, received.Sub(sent))/rate
	if high < low {
		return Jump{} // our clock has jumped, or the arguments are in the wrong order
	}
	if w.seen {
		drift := max(0, received.Sub(w.at)) / rate
		was := Watch{low: w.low - drift, high: w.high + drift}
		switch {
		case low > was.high:
			j = Jump{Least: low - was.high, Most: high - was.low}
		case high < was.low:
			j = Jump{Least: high - was.low, Most: low - was.high}
		default: // both bounds hold, so their intersection does
			low, high = max(low, was.low), min(high, was.high)
		}
	}
	*w = Watch{seen: true, at: received, low: low, high: high}
	return j
}

// Ours reports whether a jump ahead was caused by our own clock standing still, as Go's
// monotonic clock does on some systems while the machine sleeps. Our wall clock continues
// meanwhile: gained is how much it gained over the monotonic clock since the observation
// before. The number of nodes that jump is no evidence, since a time server can set
// several nodes one soon after the other.
func (j Jump) Ours(gained time.Duration) bool {
	return j.Least > 0 && j.Least-slack <= gained && gained <= j.Most+slack
}
