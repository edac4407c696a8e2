package quorum

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// cutOff is the part of places for an attempt that does not reach a majority.
type cutOff struct {
	since clock.Instant // since when it has not reached one; 0: it reaches one
	part  clock.Instant // since when it has had a part of the nodes; 0: it has none
	// A node that is late with its answer would make a majority. It may just be slow, and
	// push a grant as well.
	slow bool
}

// cutOffPatience is how long beyond the node timeout an attempt that does not reach a
// majority keeps a part of the nodes: a connection that broke may be back by then.
const cutOffPatience = 8 * firstLook

// update notes whether the attempt has a part of the nodes, and whether it reaches a
// majority.
func (c *cutOff) update(cfg *Config, part bool, reached, asked Set, now clock.Instant) {
	switch {
	case cfg.HasQuorum(reached):
		c.since = 0
	case c.since == 0:
		c.since = now
	}
	switch {
	case !part:
		c.part = 0
	case c.part == 0:
		c.part = now
	}
	c.slow = cfg.HasQuorum(reached | asked)
}

// handsOverAt returns when the attempt hands over the part of the nodes that it has; false
// if it does not. It does so at once if it was cut off for long when it was granted that
// part: many waiters may be cut off from the same nodes, and each is handed the lock before
// one that can have it.
func (c *cutOff) handsOverAt(nodeTimeout time.Duration) (clock.Instant, bool) {
	if c.since == 0 || c.part == 0 {
		return 0, false
	}
	at := c.since.Add(nodeTimeout + cutOffPatience)
	if c.slow {
		at = max(at, c.part.Add(firstLook))
	}
	return at, true
}

// reached returns the nodes that have granted the lock, and those that have not but
// answer, and whose grants would count. asked are the nodes that have not answered yet.
func (w *places) reached(g *grants, now clock.Instant) (reached, asked Set) {
	for i := range g.Nodes {
		n, p := &g.nodes[i], &w.nodes[i]
		switch {
		case g.holds(n, now) || n.phase == Refused && !p.slow && !p.uncounted:
			reached = reached.with(i)
		case p.sentAt != 0 && !p.uncounted:
			asked = asked.with(i)
		}
	}
	return reached, asked
}
