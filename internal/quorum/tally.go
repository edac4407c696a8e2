package quorum

import (
	"cmp"
	"slices"
	"time"
)

// Tally is what all nodes together say of one lease. In a joint configuration a majority
// of either membership counts: the holder may know only that one.
type Tally struct {
	// Held reports that a majority has the lease.
	Held bool
	// Undecided reports that no majority is known to have the lease, and that one has it
	// if the silent nodes do.
	Undecided bool
	// Nodes are the nodes of that membership that have the lease, and Need is how many
	// are a majority of it.
	Nodes Set
	Need  int
	// ExpiresIn is the longest that a majority can have the lease unless it is renewed. A
	// silent node may have it for longer than every other node. Negative: for ever.
	ExpiresIn time.Duration
}

// Tally counts the nodes that have a lease. The silent nodes have not said whether they have
// it; all others are without it. expiresIn is how long it lasts at each node that has it,
// and negative if it lasts for ever.
func (c *Config) Tally(has, silent Set, expiresIn []time.Duration) (t Tally) {
	for _, set := range c.JointSets() {
		its, need := has&set, Majority(set.Size())
		// Without this many of the nodes that answered there is no majority, even with all
		// silent ones. An answer is needed in any case.
		least := max(need-(silent&set).Size(), 1)
		if its.Size() < least {
			continue
		}
		if held := its.Size() >= need; t.Need == 0 || held && !t.Held {
			t.Held, t.Nodes, t.Need = held, its, need
		}
		if left := nthLongest(its, least, expiresIn); uint64(left) > uint64(t.ExpiresIn) {
			t.ExpiresIn = left
		}
	}
	t.Undecided = t.Need > 0 && !t.Held
	return t
}

// nthLongest returns the n-th longest time at the nodes of a set. For ever (negative) is
// longer than all others.
func nthLongest(nodes Set, n int, times []time.Duration) time.Duration {
	var its []time.Duration
	for i, d := range times {
		if nodes.Has(i) {
			its = append(its, d)
		}
	}
	slices.SortFunc(its, func(a, b time.Duration) int { return cmp.Compare(uint64(b), uint64(a)) })
	return its[n-1]
}
