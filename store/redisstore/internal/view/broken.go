package view

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// LeaseOf returns the lease that r is about, which is held or undecided. A token identifies it.
// After a break, so does the note, or an owner that has only one lease.
func LeaseOf(r store.BreakRequest, state store.State) (store.Holding, bool) {
	several := len(state.Nodes) > 1
	for _, h := range state.Leases() {
		if h.Holder.Owner == r.Owner && (h.HasToken(r.Token) || several && h.Holder.Broken && (IsNoted(r, state) || store.IsNewOwner(r.Owner))) {
			return h, true
		}
	}
	return store.Holding{}, false
}

// IsNoted reports whether the lease that was broken last is that of r.
func IsNoted(r store.BreakRequest, state store.State) bool {
	return state.Broken != nil && state.Broken.Owner == r.Owner && state.Broken.Token == r.Token
}

// HasPart reports whether a node has a part of a lease of owner.
func (v View) HasPart(owner string) bool {
	return slices.ContainsFunc(v.Records, func(r *script.Record) bool { return r.Of(owner) != nil })
}

// BreakResult reports whether a lease was broken, or other: it is certainly not the lease that was
// shown. answered has the nodes that broke it or do not have it. later has the nodes that have a
// lease of the owner with a later token. If neither is a quorum, a majority may have the lease that
// was shown.
func BreakResult(cfg quorum.Config, answered, later quorum.Set) (broken, other bool) {
	broken = cfg.HasQuorum(answered)
	return broken, !broken && cfg.HasQuorum(later)
}

// Remainder is how long a lease that was broken lasts on each node. That is known once a node has
// broken it: until then, the lease can still be renewed there.
type Remainder struct {
	has  quorum.Set
	left []time.Duration
}

// NewRemainder returns the remainder of a lease that no node has broken yet.
func NewRemainder(nodes int) *Remainder { return &Remainder{left: make([]time.Duration, nodes)} }

// Note takes the answer of a node that broke the lease. left is 0 if the node did not have it.
func (m *Remainder) Note(node int, left time.Duration) {
	if left > 0 {
		m.has |= quorum.SetOf(node)
		m.left[node] = left
	}
}

// Of returns how long a majority can have the lease, and a moment if it has ended since. said is
// what the nodes said.
func (m *Remainder) Of(cfg quorum.Config, said []store.NodeOutcome) time.Duration {
	return max(cfg.Tally(m.has, silentAmong(said), m.left).ExpiresIn, time.Millisecond)
}
