package store

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
)

// Waiter is a Store that keeps a line of those who wait for a lock, and hands
// the lock to the first of them when it is released. Its methods are to Store's
// as waiting is to asking: safe for concurrent use, and nothing is sent when the
// request is invalid.
type Waiter interface {
	Store

	// Wait takes the lock r.Name for r.Owner, and stands in line for it while
	// somebody else has it. It blocks until the lock is granted, ctx has ended, or
	// waiting is of no use.
	//
	// The place in the line is itself leased: it lasts for r.TTL, Wait refreshes
	// it, and it disappears by itself when its process dies. The order is that of
	// arrival; a lock that nobody has goes to whoever asks first. r.Owner must be
	// new, as ever; one from NewOwnerAt keeps its rank on every node, and where a
	// node that has lost the line is told of it again.
	//
	// reason, if not nil, is told why the lock was not granted yet, at least once
	// before the first pause and whenever something new is known: a *BusyError, or
	// a *QuorumError while too few nodes answer, which Wait rides out. How soon another
	// holder or position is known is the store's business: it need not ask for it more
	// often than the place is refreshed. It is called
	// on whatever goroutine brought the news, at times when Wait has just returned,
	// and must not block.
	//
	// Errors are those of Acquire but for ErrBusy, and a QuorumError only where
	// waiting can not mend it. On every error the place is given up, and nothing
	// is left of the attempt, as with Acquire.
	Wait(ctx context.Context, r Request, reason func(error)) (Grant, error)

	// Draw reserves one further token and r.Spare more at most, larger than r.Above
	// and than those of all grants before, for a lease that r.Owner holds, as
	// Wait and Acquire reserve the first ones, and says whether anybody waits for
	// the lock. ErrNotHeld: the lock is certainly no longer held by that owner;
	// any other error: no token may be used.
	Draw(ctx context.Context, r Request) (Drawn, error)
}

// Drawn are tokens that were reserved for a lease later on.
type Drawn struct {
	// Token is the first of them; Spare more follow it, at most as many as were
	// asked for.
	Token fence.Token
	Spare int
	// Waiting says whether anybody stands in line for the lock, in this process
	// or elsewhere.
	Waiting bool
}

// Place is one waiter's in the line for a lock.
type Place struct {
	// Holder is who waits; Since is when it began to.
	Holder Holder
	// ExpiresIn is when the place ends by itself unless it is refreshed.
	ExpiresIn time.Duration
}

// NewOwnerAt returns a fresh owner value as NewOwner does, for somebody who may
// have to wait. It says when the wait began, in microseconds: its rank in the
// line, which is the same on all nodes, and which orders owners who got a part
// of the nodes each. A wall clock that is wrong costs fairness, nothing else.
func NewOwnerAt(since time.Time) string {
	b := make([]byte, 0, 40)
	b = append(b, NewOwner()...)
	b = append(b, rankMark)
	return string(strconv.AppendUint(b, uint64(max(0, since.UnixMicro())), 36))
}

// SameRank returns a fresh owner value of the rank that owner has.
func SameRank(owner string) string {
	_, rank, _ := strings.Cut(owner, string(rankMark))
	return NewOwner() + string(rankMark) + rank
}

// rankMark is not among the characters of base64url.
const rankMark = '.'

// Rank is when owner began to wait, in microseconds; 0 where it does not say.
func Rank(owner string) uint64 {
	_, text, _ := strings.Cut(owner, string(rankMark))
	n, err := strconv.ParseUint(text, 36, 52)
	if err != nil {
		return 0
	}
	return n
}

// Before says whether owner a comes before b in any line: it began to wait
// earlier, or, of two who did not say or began together, by its name.
func Before(a, b string) bool {
	if x, y := Rank(a), Rank(b); x != y {
		return x < y
	}
	return a < b
}
