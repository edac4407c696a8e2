package driver

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/nodeclock"
	"github.com/leasehold-dev/leasehold/store"
)

// Clocks watches the clocks of the nodes. One that jumped ahead may have dropped
// leases before their time, so it is discounted: what it grants does not count
// until the longest of them is over. A client that has not seen the jump cannot
// know. It is safe for concurrent use.
type Clocks struct {
	hold time.Duration
	ours func() time.Duration
	log  *slog.Logger

	mu    sync.Mutex
	nodes []watched
}

type watched struct {
	nodeclock.Watch
	at     clock.Instant // of the last observation; 0: there was none
	ours   time.Duration // what Clocks.ours said then
	jumped time.Duration // ahead, the last time
	until  clock.Instant // it is discounted before
}

// NewClocks watches so many nodes, whose leases last for hold at most.
//
// ours is by how much this machine's wall clock is ahead of the clock that the
// instants are read on, since any moment. A jump of a node by which it has grown as
// well is put down to that clock having stood still. Nil where it cannot, as on
// Linux: then every jump is the node's.
func NewClocks(nodes int, hold time.Duration, ours func() time.Duration, log *slog.Logger) *Clocks {
	if ours == nil {
		ours = func() time.Duration { return 0 }
	}
	return &Clocks{hold: hold, ours: ours, log: log, nodes: make([]watched, nodes)}
}

// WallAhead is what NewClocks needs to know of c, this machine's clock: nil where it
// goes on while the machine sleeps.
func WallAhead(c clock.Clock) func() time.Duration {
	if clock.CountsSuspend {
		return nil
	}
	return func() time.Duration { return time.Duration(time.Now().UnixNano() - int64(c.Now())) }
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
	ours := c.ours()
	gained := ours - n.ours
	n.at, n.ours = received, ours
	switch jump := n.Observe(sent, received, at); {
	case jump.Least > tolerable && jump.Ours(gained):
		c.log.Warn("this machine's clock has stood still, as it does on this system while the machine sleeps", "for", store.Round(gained))
	case jump.Least > tolerable:
		n.jumped, n.until = jump.Least, received.Add(c.hold)
		c.log.Warn("a node's clock has jumped ahead: it may have dropped leases too early, and what it grants does not count for a while", "node", addr, "by", store.Round(jump.Least), "for", c.hold)
	case jump.Least < -tolerable:
		c.log.Warn("a node's clock has jumped back", "node", addr, "by", store.Round(-jump.Least))
	}
	if left := n.until.Sub(received); left > 0 {
		return &jumpError{n.jumped, left}
	}
	return nil
}

// ReadAt is when the node's clock was last observed; zero: never.
func (c *Clocks) ReadAt(node int) clock.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[node].at
}

type jumpError struct{ by, left time.Duration }

// said is how a node stands whose grants do not count.
func (e *jumpError) outcome() store.NodeOutcome {
	return store.NodeOutcome{Outcome: store.Quarantined, ExpiresIn: e.left, Err: e}
}

func (e *jumpError) Error() string {
	return fmt.Sprintf("its clock has jumped ahead by %v, and it may have dropped leases too early; it takes part again in %v", store.Round(e.by), store.Round(e.left))
}
