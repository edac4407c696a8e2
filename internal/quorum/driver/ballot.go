package driver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// ballot drives one quorum.Vote for each of several leases at once. Replies that arrive
// after the verdicts change nothing. With the last of them the memory is reused.
type ballot[P any] struct {
	k       *Driver[P]
	over    chan struct{} // gets an element when every vote has a verdict
	batches []batch[P]

	mu      sync.Mutex
	alarm   alarm
	users   int         // the caller and every call under way
	done    func(error) // gets the outcome of a call that was started; nil: a goroutine waits
	op      quorum.Op
	start   clock.Instant // before anything was sent
	leases  []store.Lease
	renewed bool // of a release: ReleaseRequest.Renewed
	undo    bool // of a release: ReleaseRequest.Undo
	votes   []quorum.Vote
	open    int
	reports []store.NodeOutcome // per lease and node; empty while all said yes
	then    *attempt[P]         // its first question goes with this one; see ReleaseAndRejoin
	leaves  *departure          // of a release: the owner's, if it waited for the lease
}

// Renew extends leases that have been checked; see store.Store.
func (k *Driver[P]) Renew(ctx context.Context, leases []store.Lease) []error {
	errs := make([]error, len(leases))
	if len(leases) == 0 {
		return errs
	}
	b := k.newBallot(quorum.Extend)
	var order []int
	if k.EncodeRenewals != nil {
		order = batchOrder(leases)
	}
	for i := range leases {
		b.leases = append(b.leases, leases[inOrder(order, i)])
	}
	b.runLocked(ctx)
	defer b.doneLocked()
	for i := range errs {
		errs[inOrder(order, i)] = b.resultLocked(ctx, i)
	}
	return errs
}

// Release ends a lease that has been checked; see store.Store.
func (k *Driver[P]) Release(ctx context.Context, r store.ReleaseRequest) error {
	b, err := k.beginRelease(r)
	if err != nil {
		return err
	}
	b.runLocked(ctx)
	defer b.doneLocked()
	return b.resultLocked(ctx, 0)
}

func (k *Driver[P]) beginRelease(r store.ReleaseRequest) (*ballot[P], error) {
	if k.Abandon(r.Owner) {
		return nil, fmt.Errorf("%s %q: %w", quorum.Release, r.Name, store.ErrNotHeld)
	}
	b := k.newBallot(quorum.Release)
	b.leases, b.renewed, b.undo = append(b.leases, r.Lease), r.Renewed, r.Undo
	b.leaves = k.waiters.releasing(r.Owner, quorum.AllOf(len(k.Nodes)))
	return b, nil
}

// newBallot returns a ballot without leases whose only user is the caller, and whose mutex is held.
func (k *Driver[P]) newBallot(op quorum.Op) *ballot[P] {
	b, ok := k.ballots.Get().(*ballot[P])
	if !ok {
		b = &ballot[P]{k: k, over: make(chan struct{}, 1)}
		b.alarm = newAlarm(b.tick)
	}
	b.mu.Lock()
	b.op, b.users, b.leases, b.reports, b.then = op, 1, b.leases[:0], b.reports[:0], nil
	b.renewed, b.undo, b.leaves = false, false, nil
	return b
}

// doneLocked ends one use of b and unlocks it. The user must not touch b afterwards.
func (b *ballot[P]) doneLocked() {
	done, err := b.endLocked()
	b.users--
	last := b.users == 0
	b.mu.Unlock()
	if last {
		b.k.ballots.Put(b)
	}
	if done != nil {
		done(err)
	}
}

// runLocked asks every node about every lease and returns when all have a verdict. It releases the
// mutex meanwhile.
func (b *ballot[P]) runLocked(ctx context.Context) {
	longest := b.putAllLocked()
	b.mu.Unlock()
	b.k.flush()
	b.k.readInline(ctx, b.over, nil)
	await(ctx, nil, b.over, longest, b.step)
	b.mu.Lock()
}

// putAllLocked puts all questions, and returns how long it can take until all votes have a verdict.
func (b *ballot[P]) putAllLocked() (longest time.Duration) {
	b.open = len(b.leases)
	b.votes = slices.Grow(b.votes[:0], b.open)
	b.start = b.k.Clock.Now()
	for i := range b.leases {
		c := b.k.config(b.leases[i])
		longest = max(longest, c.NodeTimeout)
		b.votes = append(b.votes, quorum.NewVote(c, b.op, b.start))
	}
	b.encodeLocked()
	for n := range b.k.Nodes {
		b.askLocked(n)
	}
	b.armLocked(b.start)
	return longest
}

// questionFor is the question about one lease.
func (b *ballot[P]) questionFor(i int) Question {
	r := b.leases[i]
	// An acquire that was not answered may still arrive. A single node has answered,
	// or there would be no lease, unless the acquire was repeated.
	tombstone := b.op == quorum.Release && (len(b.k.Nodes) > 1 || b.renewed)
	q := Question{Op: b.op, Lease: r, Tombstone: tombstone, Renewed: b.renewed, Undo: b.undo}
	if a := b.then; a != nil {
		q.Next = &Question{Op: quorum.Acquire, Lease: a.r.Lease, Barge: b.k.Barge, Waits: true, IfHeld: true, Stamp: a.start}
	}
	return q
}

// askLocked puts all batches to one node.
func (b *ballot[P]) askLocked(node int) {
	for _, p := range b.batches {
		b.putLocked(node, p, true)
	}
}

// applyLocked steps one vote.
func (b *ballot[P]) applyLocked(i int, e quorum.Event, now clock.Instant) {
	before := b.votes[i].Verdict()
	sends := b.votes[i].Step(e, now, nil)
	if before == quorum.Open && b.votes[i].Verdict() != quorum.Open {
		if b.open--; b.open == 0 && b.done == nil {
			b.over <- struct{}{}
		}
	}
	for _, send := range sends { // whose outcome does not matter
		if c := b.k.Clocks; c != nil {
			b.k.uncounted.add(send.Node, b.leases[i], now, max(c.until(send.Node), now.Add(c.hold(now))))
		}
		q := Question{Op: send.Op, Lease: b.leases[i]}
		c := Call[P]{Payload: payloadOf(b.k, q), Timeout: b.votes[i].NodeTimeout, To: ignored{}}
		if err := b.k.Nodes[send.Node].Put(c); err == nil {
			b.k.Logger.Debug("healing a node that lost a lease", "lock", b.leases[i].Name, "node", b.k.Nodes[send.Node].Addr())
		}
	}
}

// ignored receives replies that change nothing.
type ignored struct{}

func (ignored) Receive(int, int, Reply) {}

func (b *ballot[P]) step(e quorum.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stepLocked(e, b.k.Clock.Now())
}

// stepLocked applies an event to all open votes.
func (b *ballot[P]) stepLocked(e quorum.Event, now clock.Instant) {
	for i := range b.votes {
		if b.votes[i].Verdict() == quorum.Open {
			b.applyLocked(i, e, now)
		}
	}
}

// armLocked sets the alarm for when the first of the open votes has taken too long.
func (b *ballot[P]) armLocked(now clock.Instant) {
	for i := range b.votes {
		if at, ok := b.votes[i].Next(); ok {
			b.alarm.set(at, now, false)
		}
	}
}

// tick is as that of an attempt.
func (b *ballot[P]) tick() {
	b.mu.Lock()
	b.alarm.at = 0
	if b.users == 0 {
		b.mu.Unlock()
		return
	}
	b.users++ // this function
	now := b.k.Clock.Now()
	b.stepLocked(quorum.Event{Kind: quorum.Tick}, now)
	b.k.ticked(b.over)
	b.armLocked(now)
	b.doneLocked()
}

// Receive implements Receiver.
func (b *ballot[P]) Receive(node, tag int, ans Reply) {
	b.mu.Lock()
	defer b.doneLocked()
	at := b.k.receivedAt(ans)
	b.k.checkClock(node, ans, b.start, at)
	b.leftLocked(node, ans.Kind)
	b.answerLocked(tag, node, ans, at)
}

// answerLocked steps the vote on one lease with a node's answer. A node that has the lease counts
// whatever its clock, unless it granted the lease while it was discounted.
func (b *ballot[P]) answerLocked(i, node int, ans Reply, at clock.Instant) {
	if b.op == quorum.Extend && ans.Kind == quorum.Yes && !b.k.countsRenewal(node, b.leases[i], at) {
		ans.Kind, ans.Report = quorum.Unknown, store.NodeOutcome{Outcome: store.Quarantined, Err: errUncounted}
	}
	b.noteLocked(i, node, ans.Report)
	b.applyLocked(i, quorum.Event{Kind: ans.Kind, Node: node}, at)
}

var errUncounted = errors.New("its clock has jumped ahead, and it granted this lease only afterwards")

// leftLocked notes how a node has answered the release of a lease that was waited for. If it is
// unknown whether the node has released the lease, and it has pushed a grant meanwhile, the
// grant is released again.
func (b *ballot[P]) leftLocked(node int, kind quorum.Kind) {
	if b.leaves == nil {
		return
	}
	if late := b.k.waiters.released(b.leaves, node); late && (kind == quorum.Unknown || kind == quorum.Unsent) {
		decline(b.k, node, b.leaves.r)
	}
}

// decline releases what a node has granted to an owner that has left. The release leaves a
// tombstone, since other requests of that owner may still arrive.
func decline[P any](k *Driver[P], node int, r store.Lease) {
	if !declineUnwanted {
		return
	}
	q := Question{Op: quorum.Release, Lease: r, Tombstone: true, Renewed: true}
	c := Call[P]{Payload: payloadOf(k, q), Timeout: k.NodeTimeout(r.TTL), To: ignored{}}
	if err := k.Nodes[node].Put(c); err != nil {
		k.Logger.Debug("cannot release a grant to a waiter that has left; it ends by its TTL", "lock", r.Name, "node", k.Nodes[node].Addr(), "err", err)
	}
}

// noteLocked keeps the report of a node about a lease.
func (b *ballot[P]) noteLocked(i, node int, said store.NodeOutcome) {
	if len(b.reports) == 0 {
		if said.Outcome == store.Granted {
			return
		}
		b.reports = clearOutcomes(b.reports, len(b.leases)*len(b.k.Nodes))
	}
	b.reportsOf(i)[node] = said
}

// reportsOf returns the reports about one lease.
func (b *ballot[P]) reportsOf(i int) []store.NodeOutcome {
	if len(b.reports) == 0 {
		return nil
	}
	n := len(b.k.Nodes)
	return b.reports[i*n : (i+1)*n]
}

// resultLocked is the error of one lease.
func (b *ballot[P]) resultLocked(ctx context.Context, i int) error {
	v, r := &b.votes[i], b.leases[i]
	// If half of an even number of nodes are without the lease, it is gone, but others
	// cannot have the lock yet: it is not released.
	if v.Gone() && (b.op != quorum.Release || v.Verdict() == quorum.Won) {
		return fmt.Errorf("%s %q: %w", b.op, r.Name, b.notHeldLocked(i))
	}
	if v.Verdict() == quorum.Won {
		return nil
	}
	err := &store.QuorumError{Op: b.op.String(), Name: r.Name, Need: quorum.Majority(len(b.k.Nodes)), Nodes: describe(b.k.Nodes, b.reportsOf(i), v)}
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", ctx.Err(), err)
	}
	return err
}

// notHeldLocked is ErrNotHeld with the present holder, if there is another one.
func (b *ballot[P]) notHeldLocked(i int) error {
	switch busy := newBusyError(b.leases[i].Name, b.reportsOf(i), quorum.Majority(len(b.k.Nodes))); {
	case busy == nil:
	case busy.Holder.Owner == b.leases[i].Owner: // what it still has does not count
		if busy.Holder.Broken {
			return fmt.Errorf("%w: the lease was broken", store.ErrNotHeld)
		}
	default:
		return fmt.Errorf("%w: now held by %s", store.ErrNotHeld, busy.Holder)
	}
	return store.ErrNotHeld
}
