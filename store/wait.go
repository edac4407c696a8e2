package store

import (
	"strconv"
	"strings"
	"time"
)

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
