package quorum

import "github.com/leasehold-dev/leasehold/internal/clock"

// confirmation is the part of an attempt that has a majority stand at one token: the second
// round.
type confirmation struct {
	asked uint64        // the largest token that a node was asked to confirm
	by    clock.Instant // node timeout of the round; 0 before it
}

// token returns the token to confirm. A node that was asked to confirm one will stand at
// it. A smaller one, which is enough once a later answer is smaller, would not be the one that
// Inspect finds.
func (c *confirmation) token(g *grants, held Set) uint64 { return max(g.largestToken(held), c.asked) }

// ask appends the requests to confirm token to nodes that granted these slots and stand lower. An
// attempt that waits has as many rounds as it needs.
func (c *confirmation) ask(g *grants, token uint64, slots string, waits bool, now clock.Instant, out []Send) []Send {
	if c.by == 0 || waits && now >= c.by {
		c.by = now.Add(g.NodeTimeout)
	}
	for i := range g.Nodes {
		if n := &g.nodes[i]; (g.holds(n, now) && n.slots == slots || !confirmOwned) && max(n.token, n.asked) < token {
			n.asked, c.asked = token, token
			out = append(out, Send{Node: i, Op: Confirm, Token: token, Slots: slots})
		}
	}
	return out
}

// standingAt returns the nodes that have confirmed the token, or granted it.
func (g *grants) standingAt(token uint64, held Set) (s Set) {
	for i := range g.Nodes {
		if n := &g.nodes[i]; n.canConfirm() && !n.late && n.token == token && (held.Has(i) || !confirmOwned) {
			s = s.with(i)
		}
	}
	return s
}

// confirming reports whether the node was asked to confirm a token and has not done so.
func (n *candidate) confirming() bool { return n.phase == Held && n.asked > n.token }

// canConfirm reports whether the token can be confirmed there.
func (n *candidate) canConfirm() bool { return n.phase == Held || !confirmOwned }

// confirmed applies the answer to a confirmation.
func (n *candidate) confirmed(e Event) {
	switch e.Kind {
	case Yes:
		n.token, n.late = max(n.token, e.Token), false
	case No, Absent: // this owner no longer has the lock there
		n.phase = Refused
	default: // the node may have the lock but cannot confirm: it is released
		n.phase = Doubtful
	}
}

// Behind returns the nodes that have granted the lock to an attempt that is won, and whose
// counters are behind its token. To raise them is a late confirmation, which hides a missing
// one in most cases.
func Behind(a *Attempt) (s Set) {
	if !confirmToken {
		return 0
	}
	for i := range a.Nodes {
		if n := &a.nodes[i]; a.verdict == Won && n.phase == Held && max(n.token, n.asked) < a.token {
			s = s.with(i)
		}
	}
	return s
}
