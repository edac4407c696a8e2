package redisstore

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// How far a server's clock may drift unnoticed grows with the time since it was last
// read: after an hour a jump of half a minute passes for drift. So each of several
// servers is asked for the time where nothing else has told it for half of the longest
// TTL, also while nobody wants a lock.

// clockReading is when a node's clock is read without a lock being asked for. Guarded
// by the node's mutex.
type clockReading struct {
	due   time.Time     // when the next reading is due; zero: none ever is
	asked clock.Instant // before the present one was sent; zero: none is under way
}

var timeCommand = &command{bytes: newCommand("TIME").bytes, repeats: true}

// leastClockPause keeps tiny TTLs from having the time asked for all the time.
const leastClockPause = 100 * time.Millisecond

// clockPause is how long a server's clock may go unread.
func (o Options) clockPause() time.Duration { return max(o.MaxTTL/2, leastClockPause) }

// watchesClock reports whether the server's clock is to be read.
func (n *node) watchesClock() bool { return n.s.keeper.Clocks != nil }

// clockSaid takes in what the server said to TIME, between sent and received. Anything
// but a time changes nothing.
func (n *node) clockSaid(said value, sent, received clock.Instant) {
	if at := clockOf(said.list); at != 0 && n.watchesClock() {
		n.s.keeper.Clocks.Observe(n.index, n.Addr(), sent, received, at)
	}
}

// startClock has a new connection tell the time. The mutex is held.
func (n *node) startClock(now time.Time) {
	if n.watchesClock() {
		n.clock.due = now.Add(n.s.o.clockPause())
	}
}

// readClock asks for the time if that is due. The connection is in use, and the mutex
// is held.
func (n *node) readClock(now time.Time) {
	c := &n.clock
	if !n.watchesClock() || now.Before(c.due) {
		return
	}
	pause, at := n.s.o.clockPause(), n.s.o.Clock.Now()
	c.due = now.Add(pause)
	if unread := at.Sub(n.s.keeper.Clocks.ReadAt(n.index)); unread < pause {
		c.due = now.Add(pause - unread) // answers to others have told the time
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

// clockRead takes in the answer to that.
func (n *node) clockRead(r reply) {
	n.mu.Lock()
	sent := n.clock.asked
	n.clock.asked = 0
	n.mu.Unlock()
	n.clockSaid(r.value, sent, r.at)
}
