// Package nodeclock notices when a node's clock jumps: an expiry then comes
// sooner than anybody counted on.
package nodeclock

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// slack is what a node's answer may be off for reasons of its own: its time is
// read before the command runs, in its own resolution.
const slack = 2 * time.Millisecond

// rate is the difference in speed that the drift allowance covers: one part in
// so many.
const rate = 100

// Watch compares one node's clock with ours. The zero Watch has seen nothing.
// It is not safe for concurrent use.
type Watch struct {
	seen      bool
	at        clock.Instant
	low, high time.Duration // by how much the node's clock was ahead of ours then
}

// Jump is by how much a node's clock has jumped: positive ahead, negative back.
// The zero Jump is none. The true jump lies between Least and Most, of which Least
// is the one nearer to zero.
type Jump struct{ Least, Most time.Duration }

// Observe is told that a node read its clock as node, some time between sent
// and received on ours. It returns the jump that must have happened since the
// observations before. The next observations are compared with this one.
func (w *Watch) Observe(sent, received, node clock.Instant) (j Jump) {
	low, high := node.Sub(received)-slack, node.Sub(sent)+slack
	if high < low {
		return Jump{} // ours has jumped, or somebody mixed up the arguments
	}
	if w.seen {
		drift := max(0, received.Sub(w.at)) / rate
		was := Watch{low: w.low - drift, high: w.high + drift}
		switch {
		case low > was.high:
			j = Jump{Least: low - was.high, Most: high - was.low}
		case high < was.low:
			j = Jump{Least: high - was.low, Most: low - was.high}
		default: // both hold, so what both allow is true
			low, high = max(low, was.low), min(high, was.high)
		}
	}
	*w = Watch{seen: true, at: received, low: low, high: high}
	return j
}

// Ours reports whether the jump ahead was not the node's: our own clock stood still
// instead, as Go's monotonic clock does on some systems while the machine sleeps.
// Our wall clock goes on then, and has gained as much over that clock since the
// observation before. How many nodes jump says nothing: a time server can set
// several, one soon after the other.
func (j Jump) Ours(gained time.Duration) bool {
	return j.Least > 0 && j.Least-slack <= gained && gained <= j.Most+slack
}
