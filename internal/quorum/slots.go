package quorum

import "github.com/leasehold-dev/leasehold/internal/clock"

// Over several nodes a semaphore of n permits is n locks, one for each slot, and every
// node hands out whichever slot is free there. Most often they are the same. If not, the
// attempt agrees on the slots of one node and asks the others for these. A node that had
// granted it other slots gives them up first, so that two attempts that crossed each
// other do not wait for each other. A minority that granted other slots is left to the
// next renewal: it names the slots, the node ends what the owner has beside them, and is
// then given these.
//
// An attempt asks for one set of slots in its life. So no message of this owner, however
// late, can take from it what it counts on, and two leases of a slot share a node where
// one follows the other. That is why there are never more than n holders, and why tokens
// rise in each slot.

// move is whether a node that granted other slots was asked for those agreed on.
type move uint8

const (
	notMoved move = iota
	moveAsked
	moveAnswered
)

// agree returns the nodes of held that granted the slots agreed on, and those of held
// that may still change to them. awaited are nodes whose first answer may still come.
func agree(a *Attempt, held, awaited Set, now clock.Instant) (same, hoped Set) {
	if a.slots == "" {
		if !a.HasQuorum(held) || !choose(a, held, awaited, now) {
			return 0, held
		}
	}
	if !agreeOnSlots {
		return held, 0
	}
	for i := range a.Nodes {
		switch n := &a.nodes[i]; {
		case !held.Has(i):
		case n.slots == a.slots:
			same = same.with(i)
		case n.move != moveAnswered:
			hoped = hoped.with(i)
			if a.other == "" {
				a.other = n.slots
			}
		}
	}
	return same, hoped
}

// choose agrees on the slots that a majority has granted. If no majority can any more, it
// chooses those of the first node: two attempts that were both granted something there
// do not choose the same. It reports whether it has chosen. Locks that are no semaphores
// have the empty slots.
func choose(a *Attempt, held, awaited Set, now clock.Instant) bool {
	waits := false
	for i := range a.Nodes {
		if !held.Has(i) {
			continue
		}
		same := a.grantedSlots(held, a.nodes[i].slots)
		if a.HasQuorum(same) {
			a.slots = a.nodes[i].slots
			return true
		}
		waits = waits || a.HasQuorum(same|awaited)
	}
	if waits && agreeOnSlots {
		return false
	}
	if a.waiting.waits && a.waiting.chooseAt == 0 {
		a.waiting.chooseAt = now.Add(firstLook)
	}
	if a.waiting.waits && now < a.waiting.chooseAt && hasQueued(a) {
		return false
	}
	a.slots = a.nodes[held.First()].slots
	return true
}

// hasQueued reports whether a node that answers may still hand this attempt something.
func hasQueued(a *Attempt) bool {
	for i := range a.Nodes {
		if n := &a.nodes[i]; n.phase == Refused && !n.wait.slow {
			return true
		}
	}
	return false
}

// moveTo asks nodes that granted other slots for those agreed on, once.
func moveTo(a *Attempt, nodes Set, now clock.Instant, out []Send) []Send {
	for i := range a.Nodes {
		if n := &a.nodes[i]; a.slots != "" && nodes.Has(i) && n.move == notMoved {
			n.move, a.moveBy = moveAsked, now.Add(a.NodeTimeout)
			out = append(out, acquireOf(a, i, false))
		}
	}
	return out
}

// crossed reports whether a node granted other slots than those agreed on.
func (n *candidate) crossed(slots string) bool { return n.phase == Held && n.slots != slots }

// Suggests returns the slots that a lost attempt suggests to wish for in the next one:
// some that a node granted, and that it did not agree on.
func (a *Attempt) Suggests() string { return a.other }

// acquireOf is a further acquire for one node.
func acquireOf(a *Attempt, node int, queueOnly bool) Send {
	s := Send{Node: node, Op: Acquire, Again: !a.waiting.waits || a.nodes[node].wait.reached, QueueOnly: queueOnly, Slots: a.slots}
	if s.Slots == "" {
		s.Slots, s.Wish = a.waiting.wish, a.waiting.wish != ""
	}
	return s
}

// mayAgree returns the nodes that have the slots agreed on for this attempt, or may get
// them without another owner's losing them.
func mayAgree(a *Attempt, now clock.Instant) (s Set) {
	for i := range a.Nodes {
		n := &a.nodes[i]
		switch {
		case a.holds(n, now) && (n.slots == a.slots || n.move != moveAnswered), n.wait.sentAt != 0 && !n.wait.slow, n.wait.free:
			s = s.with(i)
		}
	}
	return s
}

// Wish makes the attempt that was just begun prefer these slots, which the one before it
// suggests. The driver sends them with the first acquires.
func (a *Attempt) Wish(slots string) { a.waiting.wish = slots }
