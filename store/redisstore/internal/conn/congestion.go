package conn

import "time"

// congestion tells whether calls queue up at a server, and how many may be in flight. The quickest
// answer over a connection shows how long an answer takes without a queue.
type congestion struct {
	quickest, last time.Duration // answers; zero: none yet
	window         int           // how many calls may be in flight; zero: maxFlight
	changed        time.Time     // when the window was last changed
}

// room returns how many calls may be in flight.
func (c *congestion) room() int {
	if c.window == 0 {
		return maxFlight
	}
	return c.window
}

// adapt changes the window after an answer to a call that was sent at sent, and may take as long as
// patience, or for ever if that is zero. If most of that was used, half as many calls may be in flight: a call whose answer
// would come too late is better not sent. It grows again, an eighth at a time, while there is time to spare. An
// answer to a call from before the last change says nothing about the window.
func (c *congestion) adapt(sent, now time.Time, patience time.Duration, inFlight int) {
	took := now.Sub(sent)
	switch {
	case patience <= 0:
	case !sent.After(c.changed):
	case took > patience/2:
		c.window, c.changed = max(1, min(c.room(), inFlight)/2), now
	case took < patience/4 && c.window > 0 && inFlight >= c.window/2:
		c.changed = now
		if c.window += max(1, c.window/8); c.window >= maxFlight {
			c.window = 0
		}
	}
}

func (c *congestion) answered(took time.Duration) {
	if c.last = took; c.quickest == 0 || took < c.quickest {
		c.quickest = took
	}
}

// exists reports whether the last answer took so much longer than the quickest that calls must
// have queued up before it. On a network with a round trip of 1 to 3 ms, a factor of 2 often
// took the jitter for a backlog, which cost a tenth of the locks a second with 16 goroutines.
func (c *congestion) exists() bool { return c.last > 3*c.quickest }

const (
	// busyFrom is how many calls must be in flight before others are held back. A few callers
	// notice each wait.
	busyFrom = 4
	// enough calls are sent whatever is in flight. It is the length of a list of steps.
	enough = 16
)

// holdsBack reports whether calls wait for answers before they are sent, if so many are in flight
// and so many are enqueued. A call that is sent to a server with a backlog waits there. If it
// waits here, it can go with others, which costs both sides less. The server still has work
// meanwhile: what is enqueued is sent as soon as it is as much as what is in flight. With 16 to
// 256 goroutines on one server or five, this makes 1.1 to 1.3 times the locks a second.
func (c *congestion) holdsBack(inFlight, enqueued int) bool {
	return inFlight >= busyFrom && c.exists() && enqueued < min(inFlight, enough)
}
