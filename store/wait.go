package store

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// Waiter is a Store that keeps a FIFO queue of waiters for each lock. Releasing
// a lock hands it to the first live waiter in the same atomic step. The methods
// are safe for concurrent use and send nothing if the request is invalid.
type Waiter interface {
	Store

	// Wait acquires the lock r.Name for r.Owner, queueing while another owner
	// holds it. It blocks until the lock is granted, ctx ends, or an error shows
	// that waiting cannot succeed. A free lock goes to the first owner that asks
	// for it.
	//
	// The place in the queue is itself a lease: it lasts for r.TTL, Wait
	// refreshes it, and it expires if the process dies. Waiters are ordered by
	// arrival. r.Owner must be new. An owner from NewOwnerAt also carries its
	// rank, which keeps its place the same on every node, and again after a node
	// has lost the queue.
	//
	// If reason is not nil, Wait calls it with the cause of the delay: once
	// before the first pause, and again whenever the cause changes. The cause is
	// a *BusyError, or a *QuorumError while too few nodes answer, in which case
	// Wait goes on waiting. The holder and the position in it may be old: a store
	// need not look more often than it refreshes the place. reason may run on any
	// goroutine, may still be called when Wait has just returned, and must not
	// block.
	//
	// The errors are those of Acquire, except that ErrBusy is never returned and
	// a QuorumError only if waiting cannot mend it; ErrNotHeld means that
	// r.Owner was released during the wait. On every error Wait gives up
	// the place and leaves nothing of the attempt behind, as Acquire does.
	Wait(ctx context.Context, r WaitRequest, reason func(error)) (Grant, error)
}

// Place is the place of one waiter in the queue for a lock.
type Place struct {
	// Holder describes the waiter. Its Since is when the wait began.
	Holder Holder
	// ExpiresIn is the time until the place expires unless it is refreshed. It is negative
	// if the place never expires: another kind of client made it, without a lease.
	ExpiresIn time.Duration
}

// NewOwnerAt returns a fresh owner value, as NewOwner does, for an attempt that
// may have to wait. It includes the time when the wait began, in microseconds,
// as the owner's rank. The rank is the same on all nodes, so it also orders
// owners that were each granted a part of the nodes. A wrong wall clock costs
// fairness, nothing else.
func NewOwnerAt(since time.Time) string {
	b := make([]byte, 0, 40)
	b = append(b, NewOwner()...)
	b = append(b, rankMark)
	return string(strconv.AppendUint(b, uint64(max(0, since.UnixMicro())), 36))
}

// SameRank returns a fresh owner value with the rank of owner.
func SameRank(owner string) string {
	_, rank, _ := strings.Cut(owner, string(rankMark))
	return NewOwner() + string(rankMark) + rank
}

// rankMark is not among the characters of base64url.
const rankMark = '.'

// Rank returns when owner began to wait, in microseconds since the Unix epoch,
// or 0 if owner carries no rank.
func Rank(owner string) uint64 {
	_, text, _ := strings.Cut(owner, string(rankMark))
	n, err := strconv.ParseUint(text, 36, 52)
	if err != nil {
		return 0
	}
	return n
}

// Before reports whether owner a is ordered before owner b: a has the smaller
// rank, or the ranks are equal and a is the smaller string.
func Before(a, b string) bool {
	if x, y := Rank(a), Rank(b); x != y {
		return x < y
	}
	return a < b
}
