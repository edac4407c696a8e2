package explore

import "github.com/leasehold-dev/leasehold/internal/quorum"

// beside is a vote on one lease besides a renewal that goes on by itself: the holder
// extends the lease, or releases the lock and waits for the answer.
// There is one at a time. Its messages are in the cells.
type beside struct {
	vote  machine // 0: there is none
	op    quorum.Op
	age   uint8 // ticks since it began
	begun uint8 // extensions so far
}

// freshBeside returns the first value of a vote of that kind. Lists have none.
func freshBeside(op quorum.Op) machine {
	if op == quorum.Release {
		return fresh + 1
	}
	return fresh
}

// hasBeside reports whether leases have such votes.
func (m *Model) hasBeside() bool { return m.Extends > 0 || m.ReleaseVote }
