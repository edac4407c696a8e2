package leasehold

import "errors"

// cause is why a lock cannot be granted yet, reduced to what makes an event of its
// own: see Waiting. How long something will last is not part of it, nor is which
// nodes have said so, since that differs with each answer.
type cause struct {
	kind     causeKind
	holder   string // its owner, where somebody holds the lock
	position int    // of the waiter in the line
}

type causeKind uint8

const (
	noCause causeKind = iota // nothing was told yet
	isHeld
	inQuarantine
	noQuorum
	cameTooLate // a grant whose validity was over
)

// causeOf classifies an error for which canWait says that waiting may help.
func causeOf(err error) cause {
	busy, _ := canWait(err)
	var quorum *QuorumError
	switch {
	case busy != nil:
		return cause{isHeld, busy.Holder.Owner, busy.Position}
	case opens(err):
		return cause{kind: inQuarantine}
	case errors.As(err, &quorum):
		return cause{kind: noQuorum}
	}
	return cause{kind: cameTooLate}
}
