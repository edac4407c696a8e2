package sim

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
)

// conn is one connection. Events say when something arrives; what it is, is
// always the first in line, so order holds whatever the delays.
type conn struct {
	l    *link
	life int  // of the node: a later one does not know this connection
	shut bool // the client has given it up

	flight   []*call // sent and not answered, in order
	commands []*call // of these, on their way to the node
	replies  []reply // on their way back
	turn     int     // arrivals planned in an earlier turn are void

	lastOut, lastIn   time.Duration
	stuckOut, stuckIn int     // arrivals that a fault holds
	served            []*call // for Replay: the last commands that arrived
}

type reply struct {
	k *call
	a driver.Reply
}

// transmit sends a call; its time runs from now.
func (c *conn) transmit(k *call) {
	w := c.l.w
	c.flight = append(c.flight, k)
	c.commands = append(c.commands, k)
	c.lastOut = c.arriveAt(max(w.now()+c.l.delay(), c.lastOut))
	w.after(k.mc.Timeout, timer, func() {
		c.l.c.sees(func() {
			if !k.done && !c.shut {
				c.giveUp(store.TimedOut, errNoAnswer)
			}
		})
	})
}

func (c *conn) arriveAt(t time.Duration) time.Duration {
	turn := c.turn
	return c.l.w.at(t, outside, func() {
		if turn == c.turn {
			c.arrives()
		}
	})
}

// arrives hands the node the first command in line.
func (c *conn) arrives() {
	if c.l.held > 0 {
		c.stuckOut++
		return
	}
	k := c.commands[0]
	c.commands = c.commands[1:]
	n := c.l.n
	if n.life != c.life || !n.reachable() {
		c.reset()
		return
	}
	c.served = append(c.served, k)
	if len(c.served) > 4 {
		c.served = c.served[1:]
	}
	n.serve(k, c)
}

// reset has the client learn that the node's end of the connection is gone.
func (c *conn) reset() {
	c.l.w.after(c.l.delay(), arrival, func() {
		if c.l.held > 0 || c.l.deaf > 0 {
			return // only by getting no answers
		}
		c.l.c.sees(func() {
			if !c.shut {
				c.giveUp(store.Unreachable, errBroken)
			}
		})
	})
}

// reply sends the node's answer back.
func (c *conn) reply(k *call, a driver.Reply) {
	c.replies = append(c.replies, reply{k, a})
	c.lastIn = c.returnAt(max(c.l.w.now()+c.l.delay(), c.lastIn))
}

func (c *conn) returnAt(t time.Duration) time.Duration {
	return c.l.w.at(t, arrival, c.returns)
}

// returns hands the client the first answer in line.
func (c *conn) returns() {
	if c.l.held > 0 || c.l.deaf > 0 {
		c.stuckIn++
		return
	}
	r := c.replies[0]
	c.replies = c.replies[1:]
	if c.life != c.l.n.life {
		return // the restart took the socket's buffer with it
	}
	c.l.c.sees(func() {
		if !c.shut {
			c.flight = c.flight[1:]
			c.l.answer(r.k, r.a)
		}
	})
}

// giveUp closes the client's end. What was not answered may have been applied.
func (c *conn) giveUp(said store.Outcome, err error) {
	c.shut = true
	if c.l.conn == c {
		c.l.conn = nil
	}
	for _, k := range c.flight {
		c.l.fail(k, quorum.Unknown, said, err)
	}
	c.flight = nil
}

// heal lets go what a fault held. What a closed connection had under way is
// delivered all the same, or lost: both happen.
func (c *conn) heal() {
	w := c.l.w
	if c.shut && c.stuckOut > 0 && w.rng.IntN(2) == 0 {
		c.turn++
		c.commands, c.stuckOut = nil, 0
	}
	if c.l.held == 0 {
		for range c.stuckOut {
			c.lastOut = c.arriveAt(max(w.now()+c.l.delay(), c.lastOut))
		}
		c.stuckOut = 0
	}
	if c.l.held == 0 && c.l.deaf == 0 {
		for range c.stuckIn {
			c.lastIn = c.returnAt(max(w.now()+c.l.delay(), c.lastIn))
		}
		c.stuckIn = 0
	}
}

// cut breaks the connection now. A first part of what the client had sent
// still arrives, up to late from now.
func (c *conn) cut(late time.Duration) {
	w := c.l.w
	c.turn++
	c.commands = c.commands[:w.rng.IntN(len(c.commands)+1)]
	c.stuckOut = 0
	for range c.commands {
		d := c.l.delay()
		if late > 0 {
			d += time.Duration(w.rng.Int64N(int64(late)))
		}
		c.lastOut = c.arriveAt(max(w.now()+d, c.lastOut))
	}
	if !c.shut {
		c.giveUp(store.Unreachable, errBroken)
	}
}

// idle says whether nothing more can come of a connection.
func (c *conn) idle() bool { return c.shut && len(c.commands) == 0 && c.stuckIn == 0 }
