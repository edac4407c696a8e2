package driver

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// Node is one independent server. P is what it is sent: the payload of a Call.
type Node[P any] interface {
	// Addr returns the address for errors and logs, without credentials.
	Addr() string
	// Put queues a call behind the earlier ones and never blocks. An error means
	// that the call will never be sent and its receiver gets no reply; a *Refusal
	// gives the reason. Otherwise the receiver gets exactly one reply, however late,
	// and not before Put has returned.
	Put(Call[P]) error
	// Flush sends the calls that were put with More.
	Flush()
}

// InlineReader is a Node whose replies a waiting caller can read itself, which saves a
// switch to the goroutine that reads them otherwise.
type InlineReader interface {
	// ReadInline reads replies and pushes until over has an element or ctx has ended.
	// If waits is nil it reads while replies are outstanding; otherwise for as long as
	// waits, which is called before each message, reports true. It returns early, or at
	// once, if another goroutine is the reader.
	ReadInline(ctx context.Context, over <-chan struct{}, waits func() bool)
	// InterruptInline makes the caller that reads inline check whether to go on.
	InterruptInline()
	// Listen has the replies read although no caller waits for them.
	Listen()
}

// Question is what a node is asked.
type Question struct {
	Op    quorum.Op
	Lease store.Lease
	// Barge, of an Acquire that waits: if the lock becomes free, the waiter is only notified.
	Barge bool
	Token uint64 // of Confirm
	// Exact, of an Acquire, says that the lease gets Lease.Slots or nothing, and loses any
	// others. Otherwise these are only preferred. A Confirm, an Extend and a Heal are always
	// about Lease.Slots. See quorum.Send.
	Exact bool
	// Downgrade, of an Acquire: the owner has the lock as a writer, and becomes a reader.
	Downgrade bool
	// Tombstone, of a Release, says to leave a tombstone. Renewed and Undo are those of the
	// request.
	Tombstone, Renewed, Undo bool

	// Waits: an Acquire that joins the queue if the lock is held. Again: it was sent
	// before. QueueOnly: it does not take a free lock. IfHeld: nor does it queue unless
	// the lock is held; if the lock is free the node does nothing and answers Absent.
	// Stamp means nothing to the node, which returns it with a pushed grant.
	Waits, Again, QueueOnly, IfHeld bool
	Stamp                           clock.Instant
	// GivesWay: a Release that hands the lock to To, if that owner waits there, and
	// otherwise leaves it free. It is handed to no other waiter.
	GivesWay bool
	To       string
	// Next, of a Release, is asked right after it, atomically with it or not.
	Next *Question
}

// Call is a question on its way to one node.
type Call[P any] struct {
	// Payload is the question as Driver.Encode made it, once for all nodes. It is not
	// changed until all of them have replied.
	Payload P
	// Timeout is how long the receiver can use the reply.
	Timeout time.Duration
	To      Receiver
	Tag     int // the receiver's own
	// Next gets the reply to the question's Next, with the operation as the tag.
	Next Receiver
	// Leases is how many leases the question is about, if Driver.EncodeRenewals made
	// it of several: To is a BatchReceiver then. Zero or one: it is about one.
	Leases int
	// More says that another call to the same node, or Flush, follows at once.
	More bool
}

// Refusal is the error of Put from a node that accepts no calls at present.
type Refusal struct {
	Outcome store.Outcome
	Err     error
}

func (r *Refusal) Error() string { return r.Err.Error() }

func (r *Refusal) Unwrap() error { return r.Err }

// PutOutcome returns the outcome of the node that an error of Put stands for.
func PutOutcome(err error) store.NodeOutcome {
	if r, ok := err.(*Refusal); ok {
		return store.NodeOutcome{Outcome: r.Outcome, Err: r.Err}
	}
	return store.NodeOutcome{Outcome: store.Unreachable, Err: err}
}

// Receiver gets the reply to a call. Receive must not block.
type Receiver interface {
	Receive(node, tag int, a Reply)
}

// BatchReceiver is a Receiver of calls about several leases.
type BatchReceiver interface {
	Receiver
	// ReceiveBatch is Receive for a call about n leases whose tags begin with tag. usual
	// is the reply about each lease that is not among exceptions. It must not keep
	// exceptions.
	ReceiveBatch(node, tag, n int, usual Reply, exceptions []Exception)
}

// Exception is the reply about one lease of a batch; the first lease is 0. Exceptions
// are sorted by lease.
type Exception struct {
	Lease int
	Reply
}

// Reply is the outcome of a call.
type Reply struct {
	// Kind is Yes, No, Unsent or Unknown.
	Kind quorum.Kind
	// Token is the node's counter, after a yes to Acquire or Confirm.
	Token uint64
	// Slot and Slots are those of the grant, after a yes to Acquire; see store.Grant.
	Slot  int64
	Slots string
	// Report is the same for errors and logs.
	Report store.NodeOutcome
	// At is when the reply arrived, if the node knows; zero: now.
	At clock.Instant
	// Clock is the reading of the node's own clock, if the reply has one.
	Clock clock.Instant

	// Position is the position in the queue that an Acquire got; 1 is the head.
	Position int
	// NoPush, with a Position: the node cannot push a grant to this client.
	NoPush bool
	// Stamp is that of the request that a pushed grant answers.
	Stamp clock.Instant
	// RetrySingly, of a call about several leases: the node refused the call as a
	// whole, and may accept some of the leases.
	RetrySingly bool
}
