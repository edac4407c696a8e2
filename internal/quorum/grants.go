package quorum

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/validity"
)

// grants is what the nodes have granted to an attempt, and the lease that this amounts to
// once a majority has granted it. It compares tokens, slots and departures. When to ask a node, and
// whether the attempt is won or lost, is decided in Attempt.
type grants struct {
	Config
	ttl   time.Duration
	nodes [MaxNodes]candidate
	agreed
}

// agreed is what a majority of the nodes has granted.
type agreed struct {
	token uint64        // once won
	from  clock.Instant // once won: what validity counts from
}

// candidate is one node.
type candidate struct {
	phase Phase
	late  bool          // past its node timeout: its answer still counts, but is not waited for
	token uint64        // where its counter stands, if Held
	asked uint64        // the token that it was asked to confirm; it does so if that is larger than token
	slots string        // of its grant, if Held
	move  move          // whether it was asked for the slots that the others have
	from  clock.Instant // departure of the request that it granted, if Held
}

// holds reports whether the node certainly has the lock for this owner at now.
func (g *grants) holds(n *candidate, now clock.Instant) bool {
	return n.phase == Held && (!placeInTime || now < validity.Until(n.from, g.ttl))
}

// takeGrant applies a grant of the request that left at from. A grant of other slots than
// those agreed on is older than the one that the node has given since.
func (n *candidate) takeGrant(e Event, agreed string, from clock.Instant) {
	switch {
	case n.phase != Held, e.Slots != n.slots && n.slots != agreed:
		n.phase, n.token, n.slots, n.asked, n.from, n.late = Held, e.Token, e.Slots, 0, from, false
		return
	case e.Slots != n.slots:
		return
	}
	n.token = max(n.token, e.Token)
	n.from, n.late = max(n.from, from), false
}

// aboutAsLate is the part of the TTL within which departures count as simultaneous: a sixteenth.
const aboutAsLate = 16

// validFrom returns the instant from which validity counts: the latest at or after which a majority's
// confirmed requests left. Confirmed requests that left only a little earlier count as well: validity
// then begins with these, and is as long if one of the nodes is lost.
func (g *grants) validFrom(confirmed Set) clock.Instant {
	var since clock.Instant
	for i := range g.Nodes {
		if !confirmed.Has(i) {
			continue
		}
		var enough Set
		for j := range g.Nodes {
			if confirmed.Has(j) && g.nodes[j].from >= g.nodes[i].from {
				enough = enough.with(j)
			}
		}
		if g.HasQuorum(enough) {
			since = max(since, g.nodes[i].from)
		}
	}
	latest := since
	for i := range g.Nodes {
		if from := g.nodes[i].from; confirmed.Has(i) && from >= latest.Add(-g.ttl/aboutAsLate) {
			since = min(since, from)
		}
	}
	return since
}

// largestToken is the largest answer of the majority with the smallest answers, so
// that no node is asked to confirm needlessly. Nodes outside that majority do not
// matter. Of a joint configuration it is the larger of the two.
func (g *grants) largestToken(held Set) (token uint64) {
	for _, set := range g.JointSets() {
		var answers [MaxNodes]uint64
		n := 0
		for i := range g.Nodes {
			if (held & set).Has(i) {
				answers[n] = g.nodes[i].token
				n++
			}
		}
		slices.Sort(answers[:n])
		token = max(token, answers[Majority(set.Size())-1])
	}
	return token
}

// grantedSlots returns the nodes of held that granted these slots.
func (g *grants) grantedSlots(held Set, slots string) (s Set) {
	for i := range g.Nodes {
		if held.Has(i) && g.nodes[i].slots == slots {
			s = s.with(i)
		}
	}
	return s
}

// Token returns the token of the grant, once won.
func (g *grants) Token() uint64 { return g.token }

// From returns the instant from which validity counts, once won: a departure of the
// granted requests.
func (g *grants) From() clock.Instant { return g.from }

// Late reports whether the node missed its node timeout.
func (g *grants) Late(node int) bool { return g.nodes[node].late }

// Agreed reports whether the node granted the lock, even if it was released since.
func (g *grants) Agreed(node int) bool { return g.nodes[node].token > 0 }
