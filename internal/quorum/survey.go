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
	reached    Set    // see Attempt.reached
	asked      Set
}

// survey looks at all nodes, and notes at each what now is about it.
func (a *Attempt) survey(now clock.Instant) (v survey) {
	v.leader = a.leader(now)
	for i := range a.Nodes {
		n := &a.nodes[i]
		p := &n.wait
		p.slow = p.sentAt != 0 && now >= p.sentAt.Add(a.NodeTimeout)
		v.part = v.part || a.holds(n, now) || p.discounted
		v.discounted = v.discounted || p.discounted
		v.pending = v.pending || p.sentAt != 0 && !p.slow
		held := n.phase == Refused && now < p.holderUntil && a.Nodes > 1
		gaining := now < p.holderSince.Add(partPatience)
		if p.holderGaining = held && p.senior && gaining; p.holderGaining {
			v.senior = true
		}
		if held && !gaining {
			v.stuck = v.stuck.with(i)
		}
	}
	v.reached, v.asked = a.reached(now)
	return v
}

// complete reports whether an attempt with a part of the nodes has all answers, and has not
// acted on them yet.
func (v *survey) complete(l *waitState) bool { return v.part && !v.pending && !l.acted }

// givesWay reports whether the attempt gives up what it has, and notes to whom. look says that
// it is about to ask the other nodes for their holders again.
func (a *Attempt) givesWay(v *survey, look bool, now clock.Instant) bool {
	l := &a.waiting
	seen, longest := v.complete(l), a.longestPause()
	handOverAt, cutOff := l.cutOff.handsOverAt(a.NodeTimeout)
	triesOthersAt := a.triesOthersAt()
	switch {
	case seen && v.leader == "" && v.senior:
		l.toSenior = true
	case seen && v.leader != "" && l.lookPause >= min(leaderPatience, longest):
	case triesOthersAt != 0 && now >= triesOthersAt:
		l.blocked = true
	case cutOff && now >= handOverAt, look && v.discounted && !v.pending, seen && a.stalled(v):
		l.toNext = true
	default:
		return false
	}
	return true
}

// stalled reports whether the attempt reaches a majority, but not one of nodes that are free or
// may soon be: their holders do not get a majority either.
func (a *Attempt) stalled(v *survey) bool {
	patience := min(max(a.NodeTimeout, 2*firstLook), partPatience, a.longestPause())
	return v.leader == "" && !a.HasQuorum(v.reached&^v.stuck) && a.HasQuorum(v.reached) && a.waiting.lookPause >= patience
}

// queued reports whether a node that answers may still hand this attempt something.
func (a *Attempt) queued() bool {
	for i := range a.Nodes {
		if n := &a.nodes[i]; n.phase == Refused && !n.wait.slow {
			return true
		}
	}
	return false
}

// leader returns the owner that has a majority by the answers so far, or "". A single
// node has none, since its holder cannot lose it to another.
func (a *Attempt) leader(now clock.Instant) string {
	if a.Nodes == 1 {
		return ""
	}
	for i := range a.Nodes {
		holder := a.nodes[i].wait.holder
		if holder == "" {
			continue
		}
		var has Set
		for j := range a.Nodes {
			if n := &a.nodes[j]; n.phase == Refused && n.wait.holder == holder && now < n.wait.holderUntil {
				has = has.with(j)
			}
		}
		if a.HasQuorum(has) {
			return holder
		}
	}
	return ""
}
