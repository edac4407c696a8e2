package runner

import "time"

// Budget divides the time between the loss of a lease and the end of its
// validity.
type Budget struct {
	// Grace is how long a command may take to end after it was asked to stop.
	// Then it is killed. Zero means that it is killed at once.
	Grace time.Duration
	// Slack is how much validity is left when the command is killed, for its
	// processes to end.
	Slack time.Duration
}

// NewBudget returns the Budget for a lease with the given TTL. A machine under
// load takes time to end processes: the slack is 4 % of the TTL, at most half a
// second.
func NewBudget(ttl, grace time.Duration) Budget {
	return Budget{Grace: grace, Slack: min(ttl/25, 500*time.Millisecond)}
}

// DefaultGrace is a tenth of the TTL, at most ten seconds.
func DefaultGrace(ttl time.Duration) time.Duration { return min(ttl/10, 10*time.Second) }

// Notice is how long before the end of validity the loss must be known.
func (b Budget) Notice() time.Duration { return b.Grace + b.Slack }

// phase is how far the end of a command has progressed.
type phase uint8

const (
	// running: the lease holds, or was not seen to be lost.
	running phase = iota
	// told: the lease is lost, and the command was asked to stop.
	told
	// killing: its whole group was killed.
	killing
	// done: nothing is left to wait for.
	done
)

// view is what is known about a command and its lease at one moment.
type view struct {
	exited bool          // the command itself has ended
	alone  bool          // and with it every process of its group; only looked at when lost
	lost   bool          // the lease is
	left   time.Duration // until validity ends; only looked at when lost
	since  time.Duration // the phase was entered
}

// next returns the phase that follows from the view. It depends on nothing else.
func (p phase) next(v view, b Budget) phase {
	switch {
	case p == done, v.exited && !v.lost, v.exited && v.alone:
		return done
	case !v.lost:
		return running
	case p == running && b.Grace > 0 && v.left > b.Slack:
		return told
	case p == running:
		return killing
	case p == told && (v.left <= b.Slack || v.since >= b.Grace):
		return killing
	case p == killing && v.exited && b.enough(v):
		return done
	}
	return p
}

// enough reports whether the rest of a killed group was waited for long enough. A
// killed process runs no more code of its own, but its entry remains until its
// parent takes note, and there are parents that never do.
func (b Budget) enough(v view) bool {
	return v.since >= time.Second || v.left <= 0 && v.since >= 20*time.Millisecond
}

// nap is how long to wait before looking again by oneself.
func (p phase) nap(v view, b Budget) time.Duration {
	const often, rarely = 5 * time.Millisecond, 100 * time.Millisecond
	switch {
	case p == running:
		return time.Hour // the lease, a signal or the command will wake us
	case v.exited:
		return often // nobody tells when a group has become empty
	case p == told:
		// Timers stand still while a machine is suspended: look again.
		return max(0, min(v.left-b.Slack, b.Grace-v.since, rarely))
	}
	return rarely
}
