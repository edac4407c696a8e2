package zk

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// contact concludes from the answers on the connections of one session how long the
// session certainly lives. It is a pure value.
//
// A leader ends a session once it has not been touched for the session's timeout. It
// learns of clients only by what followers add to their replies to its pings, every half
// tick; requests touch nothing there. So an answer alone proves little: a leader that
// stood still may end the session right after it. But on one connection requests,
// answers, pings and replies keep their order. If answers came back regularly, then the
// leader did not stand still for longer than the largest gap, and has received a touch
// that is at most that old.
type contact struct {
	tick time.Duration
	// slack is how much longer the session's timeout is than the TTL of its leases.
	slack time.Duration
	// chain has the answers that went through the leader on this connection, oldest
	// first, none sent before the one before it was answered.
	chain []exchange
	// touched is an instant at or after which this connection's leader certainly
	// touched the session.
	touched clock.Instant
	// written is when the last write was sent that a majority has accepted: the leader
	// was not yet replaced then. A new leader gives each session its whole timeout.
	written clock.Instant
	// proven is the latest instant from which on the session certainly lives for the
	// TTL of its leases.
	proven clock.Instant
}

// exchange is one request and its answer.
type exchange struct{ sent, back clock.Instant }

// slackTicks is contact.slack in ticks. Touches are sent every third of a tick, so proofs
// are at most one and a half ticks behind, plus twice the time of an answer: an answer may
// take three quarters of a tick.
const slackTicks = 3

// touchInterval is the time between two touches of a session.
func touchInterval(tick time.Duration) time.Duration { return tick / 3 }

// connected is called for the handshake of a new connection. The leader has touched the
// session, and created it if it is new, which a majority has accepted.
func (c *contact) connected(e exchange, created bool) {
	c.chain = append(c.chain[:0], e)
	c.touched, c.written = e.sent, 0
	if created {
		c.written = e.sent
	}
	c.conclude()
}

// answered is called for a request that the leader has answered on the present
// connection. wrote is set if it changed the tree.
func (c *contact) answered(e exchange, wrote bool) {
	if wrote {
		c.written = max(c.written, e.sent)
	}
	if n := len(c.chain); n > 0 && e.sent >= c.chain[n-1].back && e.sent.Sub(c.chain[n-1].sent) >= c.tick/8 {
		c.chain = append(c.chain, e)
		c.extend()
	}
	c.conclude()
}

// extend concludes from the last answer of the chain when the leader has touched the
// session.
//
// The reply to every ping that the leader sent before it answered the request before the
// last one has reached the leader before the last request. The last of those pings was
// sent at most half a tick, and one gap, before that answer. That reply, or the
// reply to an earlier ping, reported a touch that was at most one gap older than the ping.
func (c *contact) extend() {
	last := len(c.chain) - 1
	before := c.chain[last-1]
	gap := c.chain[last].back.Sub(before.sent)
	reach := func() clock.Instant { return before.sent.Add(-c.tick/2 - 2*gap) }
	i := last - 1
	for ; i > 0 && c.chain[i].sent > reach(); i-- {
		gap = max(gap, c.chain[i].back.Sub(c.chain[i-1].sent))
	}
	if c.chain[i].sent <= reach() {
		c.touched = max(c.touched, reach())
	}
	horizon := c.chain[last].sent.Add(-8 * c.tick)
	for len(c.chain) > 2 && c.chain[1].sent < horizon {
		c.chain = c.chain[1:]
	}
}

func (c *contact) conclude() {
	c.proven = max(c.proven, min(c.written, c.touched.Add(c.slack)))
}
