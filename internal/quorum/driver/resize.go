package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// Resize changes the number of permits of the semaphore called name; see quorum.Resize. All
// nodes have to answer. The error says what each of them did.
func Resize[P any](ctx context.Context, k *Driver[P], name string, r Resizing) error {
	c := k.config(store.Lease{TTL: r.Seat})
	start := k.Clock.Now()
	z := &resizing[P]{k: k, name: name, what: r, over: make(chan struct{}, 1), core: quorum.NewResize(c, start), reports: make([]store.NodeOutcome, len(k.Nodes))}
	z.mu.Lock()
	for i := range k.Nodes {
		z.putLocked(i, quorum.TakeSeat)
	}
	z.mu.Unlock()
	k.flush()
	await(ctx, k.Closing, k.Clock, start, z.over, stoppedTimer(), z, nil)
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.resultLocked(ctx)
}

// resizing drives one quorum.Resize.
type resizing[P any] struct {
	k    *Driver[P]
	name string
	what Resizing
	over chan struct{} // gets an element with the verdict

	mu      sync.Mutex
	core    quorum.Resize
	reports []store.NodeOutcome // of the phase
}

func (z *resizing[P]) putLocked(node int, op quorum.Op) {
	q := Question{Op: op, Lease: store.Lease{Name: z.name, Kind: z.what.From}, Resize: z.what}
	c := Call[P]{Payload: payloadOf(z.k, q), Timeout: z.core.NodeTimeout, To: z, Tag: int(op)}
	if err := z.k.Nodes[node].Put(c); err != nil {
		z.reports[node] = PutOutcome(err)
		z.applyLocked(quorum.Event{Kind: quorum.Unsent, Node: node, Op: op}, z.k.Clock.Now())
	}
}

// applyLocked steps the machine and puts the calls that it wants sent.
func (z *resizing[P]) applyLocked(e quorum.Event, now clock.Instant) {
	before := z.core.Verdict()
	sends := z.core.Step(e, now, nil)
	if before == quorum.Open && z.core.Verdict() != quorum.Open {
		z.over <- struct{}{}
	}
	if len(sends) > 0 {
		clear(z.reports) // of the phase before
	}
	for _, send := range sends {
		z.putLocked(send.Node, send.Op)
	}
}

// Receive implements Receiver.
func (z *resizing[P]) Receive(node, tag int, ans Reply) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.core.Verdict() != quorum.Open {
		return
	}
	z.reports[node] = ans.Report
	z.applyLocked(quorum.Event{Kind: ans.Kind, Node: node, Op: quorum.Op(tag)}, z.k.receivedAt(ans))
}

func (z *resizing[P]) step(e quorum.Event) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.core.Verdict() == quorum.Open {
		z.applyLocked(e, z.k.Clock.Now())
	}
}

func (z *resizing[P]) next() (clock.Instant, bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.core.Next()
}

// resultLocked is the error of the resize.
func (z *resizing[P]) resultLocked(ctx context.Context) error {
	if z.core.Verdict() == quorum.Won {
		return nil
	}
	nodes := describe(z.k.Nodes, z.reports, &z.core)
	may := z.core.MayHave()
	for _, n := range nodes {
		if kind, ok := errors.AsType[*store.KindError](n.Err); ok && may == 0 {
			return &store.KindError{Name: z.name, Asked: z.what.From, InUse: kind.InUse, Holder: kind.Holder}
		}
	}
	err := error(&store.QuorumError{Op: "resize", Name: z.name, Need: len(nodes), Nodes: nodes})
	if ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", ctx.Err(), err)
	}
	if may == 0 {
		return fmt.Errorf("%w; the number of permits is what it was: all nodes have to answer", err)
	}
	return fmt.Errorf("%w; %d of %d nodes may have %d permits now: repeat the resize until it works, since leases cannot be renewed by nodes with different numbers", err, may.Size(), len(nodes), z.what.To.Normal().Limit)
}
