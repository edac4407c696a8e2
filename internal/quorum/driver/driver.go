// Package driver is the shell around the quorum machines: it carries their
// messages to nodes and their verdicts to callers. It does not know what a node
// is; the Redis store brings real ones, the simulator its own, and both run
// this code.
//
// Nothing here starts a goroutine or waits for a node that is not needed: the
// machines are stepped by whoever brings an answer, and callers wait for the
// verdict only.
package driver

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// Node is one independent server.
type Node interface {
	// Addr names it to people, without credentials.
	Addr() string
	// Put sends a call behind all that was put before, and never blocks. An
	// error means that it will never be sent, and that its receiver hears
	// nothing of it; a *Refusal says more of the reason. Otherwise the receiver
	// gets exactly one answer, however late, and not before Put has returned.
	Put(Call) error
	// Flush sends what was put with More.
	Flush()
}

// InlineReader is a Node that lets who waits take in what it says, which saves waking up
// whoever does so otherwise.
type InlineReader interface {
	Node
	// ReadInline does so until there is something in over, or ctx has ended: without left,
	// while answers are awaited; otherwise for as long as left says, which is asked
	// after each thing heard. It returns early, or at once, where others take things in.
	ReadInline(ctx context.Context, over <-chan struct{}, left func() time.Duration)
}

// Question is what a node is asked.
type Question struct {
	Op    quorum.Op
	Lease store.Request
	Token uint64 // of Confirm
	// Least, of a Confirm that reserves tokens: the node need not go further than this
	// where Token is more than a second ahead of its clock. Zero: it must.
	Least uint64
	Tomb  bool // of Release

	// Waits: an Acquire of one who waits in line, has asked before if Again, and
	// does not take a lock that nobody has if QueueOnly. IfHeld is QueueOnly of one that wants
	// a place only behind a holder: where nobody has the lock the node does nothing,
	// and answers Absent. Stamp means nothing to the node, which gives it back with what
	// it says unasked.
	Waits, Again, QueueOnly, IfHeld bool
	Stamp                           clock.Instant
	// GivesWay: a Release for To, if that owner waits there, and for it to come for
	// otherwise: nobody else in line is handed the lock.
	GivesWay bool
	To       string
	// Next, of a Release: asked right after it, as one step with it or not.
	Next *Question
}

// Call is a question on its way to one node.
type Call struct {
	// Payload is the question as Driver.Encode made it: once for all nodes. It
	// stays as it is until all of them have answered.
	Payload any
	// Timeout after which the answer is of no use to whoever asked.
	Timeout time.Duration
	To      Receiver
	Tag     int // the receiver's own
	// Next is who gets the answer to the question's Next, by its operation as the tag.
	Next Receiver
	// Leases that the question is about, where Driver.EncodeRenewals made it of several:
	// To is a BatchReceiver then. Zero or one: it is about one.
	Leases int
	// More says that another call to the same node, or Flush, follows at once.
	More bool
}

// Refusal is why a node takes no calls.
type Refusal struct {
	Outcome store.Outcome
	Err     error
}

func (r *Refusal) Error() string { return r.Err.Error() }

func (r *Refusal) Unwrap() error { return r.Err }

// PutOutcome is what an error of Put says of the node.
func PutOutcome(err error) store.NodeOutcome {
	if r, ok := err.(*Refusal); ok {
		return store.NodeOutcome{Outcome: r.Outcome, Err: r.Err}
	}
	return store.NodeOutcome{Outcome: store.Unreachable, Err: err}
}

// Receiver is told what became of a call. It must not block.
type Receiver interface {
	Receive(node, tag int, a Reply)
}

// BatchReceiver is a Receiver of calls about several leases.
type BatchReceiver interface {
	Receiver
	// ReceiveBatch is Receive for a call about n leases whose tags begin with tag: of
	// others there is something else to say than the usual. It must not keep others.
	ReceiveBatch(node, tag, n int, usual Reply, others []Exception)
}

// Exception is the answer about one of the leases of a call; the first is 0. They
// come in order.
type Exception struct {
	Lease int
	Reply
}

// Reply is what became of a call.
type Reply struct {
	// Kind is Yes, No, Unsent or Unknown.
	Kind quorum.Kind
	// Token is the node's counter, after a yes to Acquire or Confirm.
	Token uint64
	// Reserved is how many tokens below that are the grant's as well, if Counted:
	// otherwise as many as were asked for.
	Reserved uint64
	Counted  bool
	// Report is the same for people.
	Report store.NodeOutcome
	// At is when it came in, where the node knows; zero: now.
	At clock.Instant
	// Clock is what the node's own clock said, if the node told.
	Clock clock.Instant

	// Position in line, where an Acquire was given a place; 1 is the next to come.
	Position int
	// NoPush: with that place, but the node has no way to tell us when it is our turn.
	NoPush bool
	// Waiting says, after a Confirm, that somebody stands in line.
	Waiting bool
	// Stamp is that of the request that was granted, where the node says so
	// unasked.
	Stamp clock.Instant
	// RetrySingly, of a call about several leases: the node refused it as a whole, and may
	// not refuse all of its parts.
	RetrySingly bool
}

// Driver asks a majority of nodes for locks. It is safe for concurrent use;
// its fields are set once, before.
type Driver struct {
	Nodes []Node
	// Sets of nodes of each of which a majority is needed; see quorum.Config.
	Sets [2]quorum.Set
	// Encode turns a question into what the nodes understand. It may do so in
	// the memory of old, a payload that nobody needs any more, or nil.
	Encode func(q Question, old any) any
	// EncodeRenewals makes one question of the renewals of several leases, in the memory of
	// old: of as many as go together, from the first. It says how many these are.
	// Renewals are sorted so that those of one TTL stand together. Nil: each lease
	// is asked about by itself.
	EncodeRenewals func(leases []store.Request, old any) (payload any, n int)
	// NodeTimeout for a request of that TTL.
	NodeTimeout func(ttl time.Duration) time.Duration
	Clock       clock.Clock
	Logger      *slog.Logger
	// Clocks of the nodes are watched; nil: they are not.
	Clocks *Clocks
	// Jitter is a pause of d at most, and not much less, at random; nil: it is
	// drawn here. For simulations.
	Jitter func(d time.Duration) time.Duration
	// Coalesce says whether so much is under way that others are about to ask as
	// well: they are let go first, so that one write will do for all. Nil: it never is.
	Coalesce func() bool
	// Closing ends what waits in line, with store.ErrClosed; nil: nothing does.
	Closing <-chan struct{}

	waiting   waiting
	sightings sightings

	// What was used and can be used again. Much of the cost of a lock would
	// otherwise be memory.
	attempts, ballots sync.Pool
}

func (k *Driver) config(r store.Request) quorum.Config {
	return quorum.Config{Nodes: len(k.Nodes), NodeTimeout: k.NodeTimeout(r.TTL), Sets: k.Sets}
}

// flush has all nodes send what was put.
func (k *Driver) flush() {
	if k.Coalesce != nil && k.Coalesce() {
		runtime.Gosched()
	}
	for _, n := range k.Nodes {
		n.Flush()
	}
}

// listen takes in what the node says, where it is the only one and lets us.
func (k *Driver) readInline(ctx context.Context, over <-chan struct{}, left func() time.Duration) {
	if len(k.Nodes) > 1 {
		return
	}
	if n, ok := k.Nodes[0].(InlineReader); ok {
		n.ReadInline(ctx, over, left)
	}
}

// at is the instant of an answer.
func (k *Driver) receivedAt(a Reply) clock.Instant {
	if a.At == 0 {
		return k.Clock.Now()
	}
	return a.At
}

// trusts looks at the clock of the node that gave an answer to what left after
// sent, and says why the node is not to be counted, if so.
func (k *Driver) checkClock(node int, a Reply, sent, received clock.Instant) *jumpError {
	if a.Clock == 0 || k.Clocks == nil {
		return nil
	}
	return k.Clocks.Observe(node, k.Nodes[node].Addr(), sent, received, a.Clock)
}

// machine is what await steps.
type machine interface {
	next() (clock.Instant, bool)
	step(quorum.Event)
}

// await returns when m is over, and steps it meanwhile: m is told that time has
// passed when it has asked for that, and that ctx has ended, or closing. now is the
// present, or a moment ago. listen, if not nil, is how to wait as long as nothing but m
// is stepped.
func await(ctx context.Context, closing <-chan struct{}, c clock.Clock, now clock.Instant, over <-chan struct{}, timer *time.Timer, m machine, listen func()) {
	select {
	case <-over: // by now
		return
	default:
	}
	defer timer.Stop()
	for {
		if at, ok := m.next(); ok {
			timer.Reset(max(at.Sub(now), 0))
		}
		if listen != nil {
			listen()
		}
		select {
		case <-over:
			return
		case <-ctx.Done():
			m.step(quorum.Event{Kind: quorum.Cancel})
			<-over // a cancelled machine has a verdict
			return
		case <-closing:
			m.step(quorum.Event{Kind: quorum.Cancel})
			<-over
			return
		case <-timer.C:
			m.step(quorum.Event{Kind: quorum.Tick})
			now = c.Now()
		}
	}
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// blank is n outcomes of which nothing is known yet, in the memory of old.
func clearOutcomes(old []store.NodeOutcome, n int) []store.NodeOutcome {
	blank := slices.Grow(old[:0], n)[:n]
	clear(blank)
	return blank
}
