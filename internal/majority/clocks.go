package majority

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/nodeclock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// Clocks watches the clocks of the nodes. One that jumped ahead may have dropped
// leases before their time, so what it grants does not count until the longest
// of them is over; a client that has not seen the jump can not know. It is safe
// for concurrent use.
type Clocks struct {
	hold time.Duration
	log  *slog.Logger

	mu    sync.Mutex
	nodes []watched
}

type watched struct {
	nodeclock.Watch
	jumped time.Duration // ahead, the last time; zero: never
	when   clock.Instant
	until  clock.Instant // what it grants does not count before
}

// NewClocks watches so many nodes, whose leases last for hold at most.
func NewClocks(nodes int, hold time.Duration, log *slog.Logger) *Clocks {
	return &Clocks{hold: hold, log: log, nodes: make([]watched, nodes)}
}

// tolerable is how far a clock may jump without any harm: leases of a second
// have as much allowance for drift.
const tolerable = 10 * time.Millisecond

// Observe is told that a node read its clock as at, between sent and received.
// The error says why its grants do not count at present, nil if they do.
func (c *Clocks) Observe(node int, addr string, sent, received, at clock.Instant) *jumpError {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := &c.nodes[node]
	jumped := n.Observe(sent, received, at)
	switch {
	case jumped > tolerable:
		n.jumped, n.when, n.until = jumped, received, received.Add(c.hold)
		if c.ours(jumped, received) {
			c.log.Warn("this machine's clock has stood still, or was set: most nodes seem to have jumped ahead", "by", store.Round(jumped))
			for i := range c.nodes {
				c.nodes[i].until = 0
			}
			break
		}
		c.log.Warn("a node's clock has jumped ahead: it may have dropped leases too early, and what it grants does not count for a while", "node", addr, "by", store.Round(jumped), "for", c.hold)
	case jumped < -tolerable:
		c.log.Warn("a node's clock has jumped back", "node", addr, "by", store.Round(-jumped))
	}
	if left := n.until.Sub(received); left > 0 {
		return &jumpError{n.jumped, left}
	}
	return nil
}

// ours says whether most nodes have jumped by about as much as this one: then
// it is not they who did. The mutex is held.
func (c *Clocks) ours(jumped time.Duration, now clock.Instant) bool {
	alike := 0
	for _, n := range c.nodes {
		if off := (n.jumped - jumped).Abs(); n.jumped > 0 && now.Sub(n.when) < c.hold && off <= jumped/4+100*time.Millisecond {
			alike++
		}
	}
	return alike >= quorum.Majority(len(c.nodes))
}

type jumpError struct{ by, left time.Duration }

// said is how a node stands whose grants do not count.
func (e *jumpError) said() store.NodeOutcome {
	return store.NodeOutcome{Outcome: store.Quarantined, ExpiresIn: e.left, Err: e}
}

func (e *jumpError) Error() string {
	return fmt.Sprintf("its clock has jumped ahead by %v, and it may have dropped leases too early; it takes part again in %v", store.Round(e.by), store.Round(e.left))
}
