package quorum

import "github.com/leasehold-dev/leasehold/internal/clock"

// survey is what the answers of all nodes amount to for an attempt that waits.
type survey struct {
	leader     string // the owner that has a majority; empty: none has
	part       bool   // some node has granted the lock to this attempt
	pending    bool   // some answer is outstanding that is not late
	senior     bool   // an earlier waiter has a node, and may be getting the others
	discounted bool   // some node has granted the lock, and its grants do not count
	stuck      Set    // nodes whose holder has failed to get a majority for long
	reached    Set    // see places.reached
	asked      Set
}

// survey looks at all nodes, and notes at each what now is about it.
func (w *places) survey(g *grants, now clock.Instant) (v survey) {
	v.leader = w.leader(g, now)
	for i := range g.Nodes {
		n, p := &g.nodes[i], &w.nodes[i]
		p.slow = p.sentAt != 0 && now >= p.sentAt.Add(g.NodeTimeout)
		v.part = v.part || g.holds(n, now) || p.discounted
		v.discounted = v.discounted || p.discounted
		v.pending = v.pending || p.sentAt != 0 && !p.slow
		held := n.phase == Refused && now < p.holderUntil && g.Nodes > 1
		gaining := now < p.holderSince.Add(partPatience)
		if p.holderGaining = held && p.senior && gaining; p.holderGaining {
			v.senior = true
		}
		if held && !gaining {
			v.stuck = v.stuck.with(i)
		}
	}
	v.reached, v.asked = w.reached(g, now)
	return v
}

// complete reports whether an attempt with a part of the nodes has all answers, and has not
// acted on them yet.
func (w *places) complete(v *survey) bool { return v.part && !v.pending && !w.acted }

// givesWay returns for whom the attempt gives up what it has. look says that it is about to ask
// the other nodes for their holders again.
func (w *places) givesWay(g *grants, v *survey, look bool, now clock.Instant) gaveWay {
	seen := w.complete(v)
	handOverAt, cutOff := w.cutOff.handsOverAt(g.NodeTimeout)
	triesOthersAt := w.triesOthersAt()
	switch {
	case !giveWay:
		return gaveNoWay
	case seen && v.leader == "" && v.senior:
		return gaveToSenior
	case seen && v.leader != "" && w.lookPause >= min(leaderPatience, g.longestPause()):
		return gaveToLeader
	case triesOthersAt != 0 && now >= triesOthersAt:
		return gaveForOthers
	case cutOff && now >= handOverAt, look && v.discounted && !v.pending, seen && w.stalled(g, v):
		return gaveToNext
	}
	return gaveNoWay
}

// stalled reports whether the attempt reaches a majority, but not one of nodes that are free or
// may soon be: their holders do not get a majority either.
func (w *places) stalled(g *grants, v *survey) bool {
	patience := min(max(g.NodeTimeout, 2*firstLook), partPatience, g.longestPause())
	return v.leader == "" && !g.HasQuorum(v.reached&^v.stuck) && g.HasQuorum(v.reached) && w.lookPause >= patience
}

// queued reports whether a node that answers may still hand this attempt something.
func (w *places) queued(g *grants) bool {
	for i := range g.Nodes {
		if g.nodes[i].phase == Refused && !w.nodes[i].slow {
			return true
		}
	}
	return false
}

// leader returns the owner that has a majority by the answers so far, or "". A single
// node has none, since its holder cannot lose it to another.
func (w *places) leader(g *grants, now clock.Instant) string {
	if g.Nodes == 1 {
		return ""
	}
	for i := range g.Nodes {
		holder := w.nodes[i].holder
		if holder == "" {
			continue
		}
		var has Set
		for j := range g.Nodes {
			if p := &w.nodes[j]; g.nodes[j].phase == Refused && p.holder == holder && now < p.holderUntil {
				has = has.with(j)
			}
		}
		if g.HasQuorum(has) {
			return holder
		}
	}
	return ""
}
