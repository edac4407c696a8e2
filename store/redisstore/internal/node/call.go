package node

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Call is one command for one node and the receiver of its answer. The receiver is a
// vote, or a poll that wants the whole reply.
type Call struct {
	Command *script.Command
	Timeout time.Duration
	since   time.Time // when it was enqueued, with the timeout; zero: it is never too late
	To      driver.Receiver
	Tag     int
	leases  int                // number of leases, for a command with several answers
	next    driver.Receiver    // receives the answer to the second question; see driver.Question
	Poll    Poll               // receives the reply as it is, instead of To
	take    func(script.Reply) // the same
	steps   int                // if more than 1: how many calls, from this one on, were sent as one list of steps
	again   resent
	Trail   *Trail
	// owed is set for a retained release.
	owed *owed
}

// resent is how a call was sent once more, after a reply that shows that nothing was executed.
type resent uint8

const (
	notResent resent = iota
	singly           // the server refused a list
	taught           // the server did not know the script, and learned it just before
	byText           // with the text of the script, which the server had forgotten again
)

// CallOf returns the call that a driver asks for.
func CallOf(c driver.Call[*script.Command]) Call {
	return Call{Command: c.Payload, Timeout: c.Timeout, To: c.To, Tag: c.Tag, leases: c.Leases, next: c.Next}
}

// Poll collects the answers of nodes to commands that only read, where even a slow node
// is worth waiting for.
type Poll chan Answer

// Answer is what a node answered.
type Answer struct {
	Node int
	script.Reply
}

// Nobody is a receiver that ignores the answer.
type Nobody struct{}

func (Nobody) Receive(int, int, driver.Reply) {}

// Trail records where a call has been sent before; see package route.
type Trail struct {
	Since  time.Time
	Moves  int
	Asking bool // the next member executes it although it does not have the slot yet
}

// Commands that belong to no lock.
var PingCommand, askingCommand = script.NewCommand("PING"), script.NewCommand("ASKING")

// AskBy enqueues a call with put, and waits for the answer.
func AskBy(ctx context.Context, put func(Call, bool) error, c Call) script.Reply {
	p := make(Poll, 1)
	c.Poll = p
	if err := put(c, false); err != nil {
		said := driver.PutOutcome(err)
		return script.Reply{Outcome: said.Outcome, Err: said.Err}
	}
	select {
	case a := <-p:
		return a.Reply
	case <-ctx.Done():
		return script.Reply{Outcome: store.Pending, Err: ctx.Err()}
	}
}
