package redisstore

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// The longer a server's clock goes unread, the more it may drift: after an hour, half a
// minute counts as drift. So the client reads the clock of each of several servers at
// least every half of the longest TTL, even while it has no requests.

// clockReading schedules readings of a node's clock outside of lock requests. It is
// guarded by the node's mutex.
type clockReading struct {
	due   time.Time     // when the next reading is due; zero: never
	asked clock.Instant // just before the reading in flight was sent; zero: none is
}

var timeCommand = &script.Command{Bytes: script.NewCommand("TIME").Bytes, Repeats: true}

// leastClockPause limits the rate of readings for tiny TTLs.
const leastClockPause = 100 * time.Millisecond

// clockPause is how long a server's clock may go unread, given the longest TTL.
func clockPause(maxTTL time.Duration) time.Duration { return max(maxTTL/2, leastClockPause) }

// watchesClock reports whether the server's clock is read.
func (n *node) watchesClock() bool { return n.s.driver.Clocks != nil }

// clockSaid observes the reply to a TIME that was sent and received at the given
// instants. It ignores a reply that is not a time.
func (n *node) clockSaid(said resp.Value, sent, received clock.Instant) {
	if at := script.ClockOf(said.List); at != 0 && n.watchesClock() {
		n.s.driver.Clocks.Observe(n.index, n.Addr(), sent, received, at)
	}
}

// startClockLocked reads the clock over a new connection.
func (n *node) startClockLocked(now time.Time) {
	if n.watchesClock() {
		n.clock.due = now.Add(clockPause(n.s.o.MaxTTL))
	}
}

// readClockLocked sends a reading if one is due. The connection is in use, and the mutex is
// held.
func (n *node) readClockLocked(now time.Time) {
	c := &n.clock
	if !n.watchesClock() || now.Before(c.due) {
		return
	}
	pause, at := clockPause(n.s.o.MaxTTL), n.s.o.Clock.Now()
	c.due = now.Add(pause)
	if unread := at.Sub(n.s.driver.Clocks.ReadAt(n.index)); unread < pause {
		c.due = now.Add(pause - unread) // replies to other commands carried the time
		return
	}
	if c.asked != 0 || n.closed {
		return
	}
	c.asked = at
	n.s.inFlight.Add(1)
	n.waiting.push(call{command: timeCommand, timeout: n.s.o.ConnectTimeout})
	n.wake()
}

// clockRead handles the reply to a reading.
func (n *node) clockRead(r script.Reply) {
	n.mu.Lock()
	sent := n.clock.asked
	n.clock.asked = 0
	n.mu.Unlock()
	n.clockSaid(r.Value, sent, r.At)
}
