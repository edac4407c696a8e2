package majority

import (
	"context"
	"fmt"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// ballot drives one quorum.Vote for each of some leases, all at once. Answers
// that come in after the verdicts are welcome and change nothing.
type ballot struct {
	k      *Keeper
	op     quorum.Op
	leases []store.Request
	over   chan struct{} // closed when every vote has its verdict

	mu    sync.Mutex
	votes []quorum.Vote
	open  int
	said  [][]store.NodeOutcome // per lease, made for the first that is no plain yes
}

// Renew extends leases that have been checked; see store.Store.
func (k *Keeper) Renew(ctx context.Context, leases []store.Request) []error {
	return k.vote(ctx, quorum.Extend, leases)
}

// Release ends a lease that has been checked; see store.Store.
func (k *Keeper) Release(ctx context.Context, r store.Request) error {
	return k.vote(ctx, quorum.Release, []store.Request{r})[0]
}

func (k *Keeper) vote(ctx context.Context, op quorum.Op, leases []store.Request) []error {
	errs := make([]error, len(leases))
	if len(leases) == 0 {
		return errs
	}
	b := &ballot{k: k, op: op, leases: leases, over: make(chan struct{})}
	b.run(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range leases {
		errs[i] = b.result(ctx, i)
	}
	return errs
}

// run asks every node about every lease and returns when all have a verdict.
func (b *ballot) run(ctx context.Context) {
	b.mu.Lock()
	b.open = len(b.leases)
	b.votes = make([]quorum.Vote, b.open)
	b.said = make([][]store.NodeOutcome, b.open)
	start := b.k.Clock.Now()
	for i, r := range b.leases {
		b.votes[i] = quorum.NewVote(b.k.config(r), b.op, start)
	}
	for i, r := range b.leases {
		b.ask(i, r)
	}
	b.mu.Unlock()
	await(ctx, b.k.Clock, b.over, b.next, b.stepAll)
}

// ask puts one lease's question in line at every node. The mutex is held.
func (b *ballot) ask(i int, r store.Request) {
	// Where the acquire has not been answered it may still arrive. A single node
	// has answered, or there would be no lease.
	tomb := b.op == quorum.Release && len(b.k.Nodes) > 1
	payload := b.k.Encode(Question{Op: b.op, Lease: r, Tomb: tomb})
	for n, node := range b.k.Nodes {
		if err := node.Put(Call{Payload: payload, Timeout: b.votes[i].NodeTimeout, To: b, Tag: i}); err != nil {
			b.note(i, n, store.NodeOutcome{Outcome: store.Unreachable, Err: err})
			b.step(i, quorum.Event{Kind: quorum.Unsent, Node: n})
		}
	}
}

// step applies an event to one vote. The mutex is held.
func (b *ballot) step(i int, e quorum.Event) {
	before := b.votes[i].Verdict()
	sends := b.votes[i].Step(e, b.k.Clock.Now(), nil)
	if before == quorum.Open && b.votes[i].Verdict() != quorum.Open {
		if b.open--; b.open == 0 {
			close(b.over)
		}
	}
	for _, send := range sends { // nobody waits for what becomes of these
		c := Call{Payload: b.k.Encode(Question{Op: send.Op, Lease: b.leases[i]}), Timeout: b.votes[i].NodeTimeout, To: healed{}}
		if err := b.k.Nodes[send.Node].Put(c); err == nil {
			b.k.Logger.Debug("a node that was without a lease is given it", "lock", b.leases[i].Name, "node", b.k.Nodes[send.Node].Addr())
		}
	}
}

// healed takes answers that change nothing: the next renewal will see.
type healed struct{}

func (healed) Answer(int, int, Answer) {}

// stepAll applies an event to all votes that are open.
func (b *ballot) stepAll(e quorum.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.votes {
		if b.votes[i].Verdict() == quorum.Open {
			b.step(i, e)
		}
	}
}

func (b *ballot) next() (first clock.Instant, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.votes {
		if at, open := b.votes[i].Next(); open && (!ok || at < first) {
			first, ok = at, true
		}
	}
	return first, ok
}

// Answer implements Receiver.
func (b *ballot) Answer(node, tag int, ans Answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note(tag, node, ans.Said)
	b.step(tag, quorum.Event{Kind: ans.Kind, Node: node})
}

// note keeps what a node said. The mutex is held.
func (b *ballot) note(i, node int, said store.NodeOutcome) {
	if b.said[i] == nil {
		if said.Outcome == store.Granted {
			return
		}
		b.said[i] = make([]store.NodeOutcome, len(b.k.Nodes))
	}
	b.said[i][node] = said
}

// result is what became of one lease. The mutex is held.
func (b *ballot) result(ctx context.Context, i int) error {
	v, r := &b.votes[i], b.leases[i]
	// Of an even number, half without the lease are enough to say that it is
	// gone, and not enough for others to have the lock: not released yet.
	if v.Gone() && (b.op != quorum.Release || v.Verdict() == quorum.Won) {
		return fmt.Errorf("%s %q: %w", b.op, r.Name, b.notHeld(i))
	}
	if v.Verdict() == quorum.Won {
		return nil
	}
	err := &store.QuorumError{Op: b.op.String(), Name: r.Name, Need: quorum.Majority(len(b.k.Nodes)), Nodes: b.k.evidence(b.said[i], v)}
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", ctx.Err(), err)
	}
	return err
}

// notHeld says that the lease is gone, and who has the lock now if anybody.
func (b *ballot) notHeld(i int) error {
	if busy := BusyError(b.leases[i].Name, b.said[i], quorum.Majority(len(b.k.Nodes))); busy != nil {
		return fmt.Errorf("%w: now held by %s", store.ErrNotHeld, busy.Holder)
	}
	return store.ErrNotHeld
}
