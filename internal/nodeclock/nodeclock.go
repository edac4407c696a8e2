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

// Observe is told that a node read its clock as node, some time between sent
// and received on ours. It returns by how much the node's clock has certainly
// jumped since the observations before: positive ahead, negative back, zero if
// nothing is amiss. The next observations are compared with this one.
func (w *Watch) Observe(sent, received, node clock.Instant) (jumped time.Duration) {
	low, high := node.Sub(received)-slack, node.Sub(sent)+slack
	if high < low {
		return 0 // ours has jumped, or somebody mixed up the arguments
	}
	if w.seen {
		drift := max(0, received.Sub(w.at)) / rate
		was := Watch{low: w.low - drift, high: w.high + drift}
		switch {
		case low > was.high:
			jumped = low - was.high
		case high < was.low:
			jumped = high - was.low
		default: // both hold, so what both allow is true
			low, high = max(low, was.low), min(high, was.high)
		}
	}
	*w = Watch{seen: true, at: received, low: low, high: high}
	return jumped
}
