package runner

import "time"

// Budget is how the time between the loss of a lease and the end of its
// validity is spent.
type Budget struct {
	// Grace is how long a command that was told to stop may take, before it is
	// killed. Zero: it is killed without being told.
	Grace time.Duration
	// Slack is what is left of validity when it is killed: the time to be gone.
	Slack time.Duration
}

// NewBudget is the Budget for a lease of that TTL. A machine under load takes
// its time to end processes, and the shorter a TTL the less there is of it: the
// slack is 4 % of the TTL, half a second at most.
func NewBudget(ttl, grace time.Duration) Budget {
	return Budget{Grace: grace, Slack: min(ttl/25, 500*time.Millisecond)}
}

// DefaultGrace is a tenth of the TTL, ten seconds at most.
func DefaultGrace(ttl time.Duration) time.Duration { return min(ttl/10, 10*time.Second) }

// Notice is how long before the end of validity the loss has to be known.
func (b Budget) Notice() time.Duration { return b.Grace + b.Slack }

// phase is how far the end of a command has come.
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

// view is what can be seen of a command and its lease at one moment.
type view struct {
	exited bool          // the command itself has ended
	alone  bool          // and with it every process of its group; only looked at when lost
	lost   bool          // the lease is
	left   time.Duration // until validity ends; only looked at when lost
	since  time.Duration // the phase was entered
}

// next is the phase that follows from what is seen. It depends on nothing else.
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

// enough says whether the rest of a killed group was waited for long enough. A
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
