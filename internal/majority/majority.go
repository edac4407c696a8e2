// Package majority is the shell around the quorum machines: it carries their
// messages to nodes and their verdicts to callers. It does not know what a node
// is; the Redis store brings real ones, the simulator its own, and both run
// this code.
//
// Nothing here starts a goroutine or waits for a node that is not needed: the
// machines are stepped by whoever brings an answer, and callers wait for the
// verdict only.
package majority

import (
	"context"
	"log/slog"
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
	// nothing of it; otherwise the receiver gets exactly one answer, however
	// late, and not before Put has returned.
	Put(Call) error
}

// Question is what a node is asked.
type Question struct {
	Op    quorum.Op
	Lease store.Request
	Token uint64 // of Confirm
	Tomb  bool   // of Release
}

// Call is a question on its way to one node.
type Call struct {
	// Payload is the question as Keeper.Encode made it: once for all nodes.
	Payload any
	// Timeout after which the answer is of no use to whoever asked.
	Timeout time.Duration
	To      Receiver
	Tag     int // the receiver's own
}

// Receiver is told what became of a call. It must not block.
type Receiver interface {
	Answer(node, tag int, a Answer)
}

// Answer is what became of a call.
type Answer struct {
	// Kind is Yes, No, Unsent or Unknown.
	Kind quorum.Kind
	// Token is the node's counter, after a yes to Acquire or Confirm.
	Token uint64
	// Said is the same for people.
	Said store.NodeOutcome
}

// Keeper asks a majority of nodes for locks. It is safe for concurrent use;
// its fields are set once, before.
type Keeper struct {
	Nodes []Node
	// Encode turns a question into what the nodes understand.
	Encode func(Question) any
	// NodeTimeout for a request of that TTL.
	NodeTimeout func(ttl time.Duration) time.Duration
	Clock       clock.Clock
	Logger      *slog.Logger
}

func (k *Keeper) config(r store.Request) quorum.Config {
	return quorum.Config{Nodes: len(k.Nodes), NodeTimeout: k.NodeTimeout(r.TTL)}
}

// await returns when over is closed, and steps a machine meanwhile: it is told
// that time has passed when next says so, and that ctx has ended.
func await(ctx context.Context, c clock.Clock, over <-chan struct{}, next func() (clock.Instant, bool), step func(quorum.Event)) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if at, ok := next(); ok {
			timer.Reset(max(at.Sub(c.Now()), 0))
		}
		select {
		case <-over:
			return
		case <-ctx.Done():
			step(quorum.Event{Kind: quorum.Cancel})
			<-over // a cancelled machine has a verdict
			return
		case <-timer.C:
			step(quorum.Event{Kind: quorum.Tick})
		}
	}
}
