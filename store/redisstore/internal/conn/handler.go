package conn

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// Handler gives meaning to what one Pipe carries. Only the connection's reader calls Reply,
// Push and Broken. Methods whose name ends in Locked are called with the Peer's Mu held,
// and must not block.
type Handler[C any] interface {
	// Greet prepares a new connection, before the first call is sent over it. The
	// connection fails if Greet does.
	Greet(ctx context.Context) error
	// AppendLocked removes at least one and at most room calls from the front of the
	// Peer's Waiting, passes each to LaunchLocked, and appends what is sent for them to
	// out.
	AppendLocked(out []byte, room int, now time.Time) []byte
	// AppendAgainLocked does the same for a call that was given to AgainLocked.
	AppendAgainLocked(c C, out []byte, now time.Time) []byte
	// ProbeLocked launches a call that does nothing, and returns what is sent for it. The
	// function answered waits until it was answered, or returns false if it was not.
	ProbeLocked(now time.Time) (out []byte, answered func() bool)
	// TakeLocked removes the calls that v answers from those in flight. It gives those
	// that have to be sent once more to AgainLocked. If it returns an error, the connection
	// ends because of it.
	TakeLocked(v resp.Value) error
	// Reply delivers v to the calls that TakeLocked has kept.
	Reply(v resp.Value)
	// Push handles a push. If it returns an error, the connection ends because of it.
	Push(v resp.Value) error
	// UpkeepLocked enqueues what is due, such as regular readings. The connection is in
	// use.
	UpkeepLocked(now time.Time)
	// DueLocked returns when UpkeepLocked has something to do; zero means not before
	// something is sent. If idle is set, nothing is in flight, and DueLocked may enqueue a
	// test of the connection.
	DueLocked(now time.Time, idle bool) time.Time
	// LostLocked is called as soon as the connection cannot be used any more, while what
	// was sent is still in flight.
	LostLocked()
	// Doubted is called with the calls that were in flight when the connection was doubted.
	Doubted(late []C)
	// Broken is called last. Calls given to AgainLocked were not executed, those in flight
	// may have been: see Unsent and Unanswered.
	Broken(why error, waited time.Duration)
}

// Owner gives meaning to the calls of a Peer, beyond its connections. Methods whose name
// ends in Locked are called with the Peer's Mu held, and must not block.
type Owner[C any] interface {
	// Reach makes a connection to the server with Open.
	Reach() (*Pipe[C], error)
	// ConnectedLocked is called for a new connection before it is used. The argument
	// recovered is set if the server could not be used before.
	ConnectedLocked(now time.Time, recovered bool)
	// Connected is called after ConnectedLocked.
	Connected()
	// DownLocked is called if the server cannot be used until the time retry. The
	// argument waited is for how long an answer was awaited. Calls are refused with the
	// error that it returns.
	DownLocked(why error, waited time.Duration, retry time.Time) error
	// WantsLocked reports whether the owner wants a connection although no call waits.
	WantsLocked() bool
	// UnsentLocked is called for a call that is removed from Waiting, because the server
	// cannot be used. Unsent follows.
	UnsentLocked(c C)
	Unsent(c C, why error)
	// IsLate reports whether nobody waits any more for an answer to the call that arrives at
	// that time.
	IsLate(c *C, at time.Time) bool
	// Repeats reports whether the call may be lost with a dead connection.
	Repeats(c *C) bool
	// Inline returns for how long after the last reply only callers read; zero means that
	// the connection's goroutine always reads. Waiters is how many callers wait for
	// pushes.
	Inline() time.Duration
	Waiters() int64
	// Gathers reports whether a caller lets others enqueue their calls before it sends fewer
	// than a list. The argument near is set if the server has answered within a look.
	Gathers(near bool) bool
	// Sent is called after each attempt to send.
	Sent()
	// Rest lets other goroutines go on.
	Rest(Moment)
}

// Moment is when a Peer lets other goroutines go on.
type Moment int

const (
	BeforeWrite  Moment = iota // others may enqueue more calls first
	AfterBreak                 // before calls of a broken connection are answered
	AfterSilence               // before a connection ends because an answer is late
)
