package node

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// The longer a server's clock goes unread, the more it may drift: after an hour, half a
// minute counts as drift. So the client reads the clock of each of several servers at
// least every half of the longest TTL, even while it has no requests.

// clockReading reads a node's clock outside of lock requests. It is guarded by the mutex of
// the node's peer.
type clockReading struct {
	shared *Shared
	peer   *conn.Peer[Call]
	index  int           // of the node
	addr   func() string // its name in messages

	due   time.Time     // when the next reading is due; zero: never
	asked clock.Instant // just before the reading in flight was sent; zero: none is
}

var timeCommand = &script.Command{Bytes: script.NewCommand("TIME").Bytes, Repeats: true}

// leastClockPause limits the rate of readings for tiny TTLs.
const leastClockPause = 100 * time.Millisecond

// clockPause is how long a server's clock may go unread, given the longest TTL.
func clockPause(maxTTL time.Duration) time.Duration { return max(maxTTL/2, leastClockPause) }

// wanted reports whether the server's clock is read.
func (c *clockReading) wanted() bool { return c.shared.Driver.Clocks != nil }

// observe observes the reply to a TIME that was sent and received at the given instants.
// It ignores a reply that is not a time.
func (c *clockReading) observe(said resp.Value, sent, received clock.Instant) {
	if at := script.ClockOf(said.List); at != 0 && c.wanted() {
		c.shared.Driver.Clocks.Observe(c.index, c.addr(), sent, received, at)
	}
}

// startLocked schedules the first reading over a new connection.
func (c *clockReading) startLocked(now time.Time) {
	if c.wanted() {
		c.due = now.Add(clockPause(c.shared.Config.MaxTTL))
	}
}

// readLocked sends a reading if one is due. The connection is in use.
func (c *clockReading) readLocked(now time.Time) {
	if !c.wanted() || now.Before(c.due) {
		return
	}
	pause, at := clockPause(c.shared.Config.MaxTTL), c.shared.Config.Clock.Now()
	c.due = now.Add(pause)
	if unread := at.Sub(c.shared.Driver.Clocks.ReadAt(c.index)); unread < pause {
		c.due = now.Add(pause - unread) // replies to other commands carried the time
		return
	}
	if c.asked != 0 || c.peer.ClosedLocked() {
		return
	}
	c.asked = at
	c.shared.askLocked(c.peer, timeCommand, c.read)
}

// read handles the reply to a reading.
func (c *clockReading) read(r script.Reply) {
	c.peer.Mu.Lock()
	sent := c.asked
	c.asked = 0
	c.peer.Mu.Unlock()
	c.observe(r.Value, sent, r.At)
}
