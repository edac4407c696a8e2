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

// Clocks watches the clocks of the nodes. A node whose clock jumped ahead may have
// dropped leases too early, so it is discounted: its grants do not count until the
// longest of those leases is over. A client that has not seen the jump cannot know of
// it. Clocks is safe for concurrent use.
type Clocks struct {
	hold  func(since clock.Instant) time.Duration
	ours  func() time.Duration
	log   *slog.Logger
	nodes []watched
}

// watched is what is known of one node's clock. It has a mutex of its own, since each reply
// carries a reading, and those of several nodes are handled at the same time.
type watched struct {
	mu sync.Mutex
	nodeclock.Watch
	at     clock.Instant // of the last observation; 0: there was none
	ours   time.Duration // what Clocks.ours said then
	jumped time.Duration // ahead, the last time
	since  clock.Instant // when that was seen; 0: never
}

// NewClocks returns a watch over nodes. hold returns for how long after since leases from
// before it may last; it may grow as more becomes known.
//
// ours returns by how much this machine's wall clock is ahead of the clock of the
// instants, counted from any moment. If it grew by as much as a node seems to have
// jumped, then the clock of the instants stood still and the node did not jump. Nil means
// that the clock cannot stand still, as on Linux.
func NewClocks(nodes int, hold func(since clock.Instant) time.Duration, ours func() time.Duration, log *slog.Logger) *Clocks {
	if ours == nil {
		ours = func() time.Duration { return 0 }
	}
	return &Clocks{hold: hold, ours: ours, log: log, nodes: make([]watched, nodes)}
}

// WallAhead returns the argument ours of NewClocks for c, this machine's clock. It is nil
// if c goes on while the machine sleeps.
func WallAhead(c clock.Clock) func() time.Duration {
	if clock.CountsSuspend {
		return nil
	}
	return func() time.Duration { return time.Duration(time.Now().UnixNano() - int64(c.Now())) }
}

// tolerable is how far a clock may jump without harm: a lease of one second has
// as much allowance for drift.
const tolerable = 10 * time.Millisecond

// Observe takes a reading at of a node's clock, made between sent and received. The
// error says why the grants of the node do not count at present; nil if they do.
func (c *Clocks) Observe(node int, addr string, sent, received, at clock.Instant) *jumpError {
	jumped, left := c.observe(&c.nodes[node], addr, sent, received, at)
	if left > 0 && (discountEach || !c.mostJumped(received)) {
		return &jumpError{jumped, left}
	}
	return nil
}

// observe is Observe for a node, and returns by how much its clock jumped ahead the last time,
// and for how long it is discounted.
func (c *Clocks) observe(n *watched, addr string, sent, received, at clock.Instant) (jumped, left time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ours := c.ours()
	gained := ours - n.ours
	n.at, n.ours = received, ours
	switch jump := n.Observe(sent, received, at); {
	case jump.Least > tolerable && jump.Ours(gained):
		c.log.Warn("this machine's clock has stood still, as it does on this system while the machine sleeps", "for", store.Round(gained))
	case jump.Least > tolerable:
		n.jumped, n.since = jump.Least, received
		c.log.Warn("a node's clock has jumped ahead: it may have dropped leases too early, so its grants do not count for a while", "node", addr, "by", store.Round(jump.Least), "for", c.hold(received))
	case jump.Least < -tolerable:
		c.log.Warn("a node's clock has jumped back", "node", addr, "by", store.Round(-jump.Least))
	}
	return n.jumped, c.untilLocked(n).Sub(received)
}

// mostJumped reports whether most of the nodes would be discounted at now. That is no
// reason to trust them: a time server can set several nodes one soon after the other.
func (c *Clocks) mostJumped(now clock.Instant) bool {
	jumped := 0
	for i := range c.nodes {
		if now < c.until(i) {
			jumped++
		}
	}
	return jumped > len(c.nodes)/2
}

// ReadAt returns when the node's clock was last observed; zero: never.
func (c *Clocks) ReadAt(node int) clock.Instant {
	n := &c.nodes[node]
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.at
}

// until returns until when a node is discounted.
func (c *Clocks) until(node int) clock.Instant {
	n := &c.nodes[node]
	n.mu.Lock()
	defer n.mu.Unlock()
	return c.untilLocked(n)
}

func (c *Clocks) untilLocked(n *watched) clock.Instant {
	if n.since == 0 {
		return 0
	}
	return n.since.Add(c.hold(n.since))
}

type jumpError struct{ by, left time.Duration }

// Outcome is the report of a node whose grants do not count.
func (e *jumpError) Outcome() store.NodeOutcome {
	return store.NodeOutcome{Outcome: store.Quarantined, ExpiresIn: e.left, Err: e}
}

func (e *jumpError) Error() string {
	return fmt.Sprintf("its clock has jumped ahead by %v, and it may have dropped leases too early; it takes part again in %v", store.Round(e.by), store.Round(e.left))
}
