package leasehold

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/waitq"
)

// canWait reports whether waiting for the lock can help: because its holder will be
// gone (busy is then set), or because nodes may come back.
func canWait(err error) (busy *BusyError, retry bool) {
	if errors.As(err, &busy) {
		return busy, true
	}
	var quorum *QuorumError
	if errors.As(err, &quorum) {
		return nil, quorum.Transient()
	}
	return nil, errors.Is(err, ErrLost) // granted, but too late to be of use
}

// opens reports whether the lock is refused because nodes are in quarantine,
// which has an end.
func opens(err error) bool {
	var quorum *QuorumError
	if !errors.As(err, &quorum) {
		return false
	}
	_, ok := quorum.OpensIn()
	return ok
}

// classOf is what a queue has to know of an error for which canWait says that waiting
// may help.
func classOf(err error) waitq.Reason {
	if busy, _ := canWait(err); busy != nil {
		return waitq.Busy
	}
	if opens(err) {
		return waitq.Closed
	}
	return waitq.NoAnswer
}

// cause is why a lock cannot be granted yet, reduced to what makes an event of its
// own: see Waiting. How long something will last is not part of it, nor is which
// nodes have said so, since that differs with each answer.
type cause struct {
	kind     causeKind
	holder   string // its owner, where somebody holds the lock
	position int    // of the waiter in the queue
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

// gaveUp is the error of a wait that its context ended. It matches the
// context's error and whatever the last answer matched.
func gaveUp(ctx context.Context, last error) error {
	ended := ctx.Err()
	if cause := context.Cause(ctx); cause != ended {
		ended = both(ended, cause)
	}
	var busy *BusyError
	if errors.As(last, &busy) {
		e := *busy
		e.Err = both(ended, busy.Err)
		return &e
	}
	switch {
	case last != nil && errors.Is(last, ended):
		return last
	}
	return both(ended, last)
}

// both is errors.Join in one line.
func both(a, b error) error {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return fmt.Errorf("%w: %w", a, b)
}
