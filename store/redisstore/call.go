package redisstore

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// call is one command for one node and the receiver of its answer. The receiver is a
// vote, or a poll that wants the whole reply.
type call struct {
	command *script.Command
	timeout time.Duration
	since   time.Time // when it was enqueued, with the timeout; zero: it is never too late
	to      driver.Receiver
	tag     int
	leases  int             // number of leases, for a command with several answers
	next    driver.Receiver // receives the answer to the second question; see driver.Question
	look    poll
	steps   int // if more than 1: how many calls, from this one on, were sent as one list of steps
	again   resent
	trail   *trail
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

// callOf returns the call that a driver asks for.
func callOf(c driver.Call[*script.Command]) call {
	return call{command: c.Payload, timeout: c.Timeout, to: c.To, tag: c.Tag, leases: c.Leases, next: c.Next}
}

// poll collects the answers of nodes to commands that only read, where even a slow node
// is worth waiting for.
type poll chan looked

type looked struct {
	node int
	script.Reply
}

// nobody is a receiver that ignores the answer.
type nobody struct{}

func (nobody) Receive(int, int, driver.Reply) {}

// trail records where a call has been sent before; see router.
type trail struct {
	since  time.Time
	moves  int
	asking bool // the next member executes it although it does not have the slot yet
}

// Commands that belong to no lock.
var pingCommand, askingCommand = script.NewCommand("PING"), script.NewCommand("ASKING")
