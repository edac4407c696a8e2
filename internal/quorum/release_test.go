package quorum

import (
	"testing"
	"time"
)

// A release has succeeded when a majority of the nodes is without the lease, since others can
// then get the lock. Half of an even number of nodes are not enough.
func TestReleaseIsWonWhenAMajorityIsWithoutTheLease(t *testing.T) {
	for _, c := range []struct {
		nodes int
		no    int // nodes that reply that the lease is not there; the others do not reply
		won   bool
	}{{1, 1, true}, {2, 1, false}, {2, 2, true}, {3, 1, false}, {3, 2, true}, {4, 2, false}, {4, 3, true}, {5, 3, true}} {
		v := NewVote(Config{Nodes: c.nodes, NodeTimeout: time.Second}, Release, 1)
		for n := range c.no {
			v.Step(Event{Kind: No, Node: n}, 2, nil)
		}
		if won := v.Verdict() == Won; won != c.won {
			t.Errorf("%d of %d nodes are without the lease: released %v, want %v", c.no, c.nodes, won, c.won)
		}
		v.Step(Event{Kind: Tick}, 2+clockSecond, nil)
		if want := map[bool]Verdict{true: Won, false: Lost}[c.won]; v.Verdict() != want {
			t.Errorf("%d of %d nodes are without the lease, and the others do not reply in time: verdict %v, want %v", c.no, c.nodes, v.Verdict(), want)
		}
	}
}

// A renewal counts only at nodes that say so, whatever became of the requests to the others.
func TestRenewalIsWonByAMajorityThatExtended(t *testing.T) {
	for _, other := range []Kind{No, Absent, Unsent, Unknown} {
		for nodes := 1; nodes <= 5; nodes++ {
			for yes := range nodes + 1 {
				v := NewVote(Config{Nodes: nodes, NodeTimeout: time.Second}, Extend, 1)
				for n := range nodes {
					kind := other
					if n < yes {
						kind = Yes
					}
					v.Step(Event{Kind: kind, Node: n}, 2, nil)
				}
				if want := map[bool]Verdict{true: Won, false: Lost}[2*yes > nodes]; v.Verdict() != want {
					t.Errorf("%d of %d nodes have extended the lease, and the others answered %v: verdict %v, want %v", yes, nodes, other, v.Verdict(), want)
				}
			}
		}
	}
}

const clockSecond = 1_000_000_000
