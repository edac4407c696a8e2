package quorum

import "github.com/leasehold-dev/leasehold/internal/clock"

// slotChoice is the part of an attempt that has nodes grant the same slots.
//
// Over several nodes a semaphore of n permits is n locks, one for each slot, and every
// node hands out whichever slot is free there. Most often they are the same. If not, the
// attempt agrees on the slots of one node and asks the others for these. A node that
// granted other slots frees them first: otherwise two attempts that crossed could wait for
// each other. A minority with other slots is left to the next renewal. The renewal names the
// slots. The node then ends the owner's other lease, and is given one with these slots.
//
// An attempt asks for one set of slots in its life. So no message of this owner, however
// late, can take from it what it counts on, and two leases of a slot share a node where
// one follows the other. That is why there are never more than n holders, and why tokens
// rise in each slot.
//
// Locks that are no semaphores have the empty slots.
type slotChoice struct {
	slots  string        // agreed on with a majority, or to be; empty before it
	other  string        // others that a node granted, to wish for next time
	wish   string        // those to wish for while none are agreed on
	moveBy clock.Instant // node timeout of the round that asks for the slots; 0 before it
	// Of an attempt that waits: when to choose, if a majority granted others each; or 0.
	chooseAt clock.Instant
}

// move is whether a node that granted other slots was asked for those agreed on.
type move uint8

const (
	notMoved move = iota
	moveAsked
	moveAnswered
)

// slotPatience is how long an attempt waits for certain slots that others have. It
// has other slots to try.
const slotPatience = 4 * firstLook

// agree returns the nodes of held that granted the slots agreed on, and those of held
// that may still change to them. awaited are nodes whose first answer may still come. With
// queued, a node that refused may still hand the attempt something: it is given a moment.
func (s *slotChoice) agree(g *grants, held, awaited Set, queued bool, now clock.Instant) (same, hoped Set) {
	if s.slots == "" {
		if !g.HasQuorum(held) || !s.choose(g, held, awaited, queued, now) {
			return 0, held
		}
	}
	if !agreeOnSlots {
		return held, 0
	}
	for i := range g.Nodes {
		switch n := &g.nodes[i]; {
		case !held.Has(i):
		case n.slots == s.slots:
			same = same.with(i)
		case n.move != moveAnswered:
			hoped = hoped.with(i)
			if s.other == "" {
				s.other = n.slots
			}
		}
	}
	return same, hoped
}

// choose agrees on the slots that a majority has granted. If no majority can any more, it
// chooses those of the first node: two attempts that were both granted something there
// do not choose the same. It reports whether it has chosen.
func (s *slotChoice) choose(g *grants, held, awaited Set, queued bool, now clock.Instant) bool {
	waits := false
	for i := range g.Nodes {
		if !held.Has(i) {
			continue
		}
		same := g.grantedSlots(held, g.nodes[i].slots)
		if g.HasQuorum(same) {
			s.slots = g.nodes[i].slots
			return true
		}
		waits = waits || g.HasQuorum(same|awaited)
	}
	if waits && agreeOnSlots {
		return false
	}
	if queued {
		if s.chooseAt == 0 {
			s.chooseAt = now.Add(firstLook)
		}
		if now < s.chooseAt {
			return false
		}
	}
	s.slots = g.nodes[held.First()].slots
	return true
}

// moves reports whether a node granted other slots than those agreed on, and was not asked for
// these yet.
func (s *slotChoice) moves(n *candidate) bool {
	return s.slots != "" && n.phase == Held && n.slots != s.slots && n.move == notMoved
}

// moveTo asks nodes that granted other slots for those agreed on, once.
func (s *slotChoice) moveTo(g *grants, nodes Set, now clock.Instant, out []Send) []Send {
	for i := range g.Nodes {
		if n := &g.nodes[i]; nodes.Has(i) && s.moves(n) {
			n.move, s.moveBy = moveAsked, now.Add(g.NodeTimeout)
			out = append(out, s.acquire(i, true, false))
		}
	}
	return out
}

// acquire is a further acquire for one node. again says that the node was asked before.
func (s *slotChoice) acquire(node int, again, queueOnly bool) Send {
	out := Send{Node: node, Op: Acquire, Again: again, QueueOnly: queueOnly, Slots: s.slots}
	if s.slots == "" {
		out.Slots, out.Wish = s.wish, s.wish != ""
	}
	return out
}

// Slots returns the slots of the grant, once won. They are empty if the lock is no
// semaphore.
func (s *slotChoice) Slots() string { return s.slots }

// Suggests returns the slots that a lost attempt suggests to wish for in the next one:
// some that a node granted, and that it did not agree on.
func (s *slotChoice) Suggests() string { return s.other }

// Wish makes the attempt that was just begun prefer these slots, which the one before it
// suggests. The driver sends them with the first acquires.
func (s *slotChoice) Wish(slots string) { s.wish = slots }
