package driver

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// attempt drives one quorum.Attempt: it carries the messages, and keeps the reports of
// the nodes for the error. It outlives the caller's verdict until every node has
// replied and every unwanted grant is released. Then its memory is reused.
type attempt[P any] struct {
	k       *Driver[P]
	over    chan struct{} // gets an element with the verdict
	payload P             // of the acquire

	reporting sync.Mutex // held while the caller's reason function runs; see reportLocked

	mu      sync.Mutex
	alarm   alarm
	users   int                      // the caller and every call under way
	ctx     context.Context          // of a call that was started; see start.go
	done    func(store.Grant, error) // gets its outcome; nil: a goroutine waits
	r       store.WaitRequest
	start   clock.Instant // before anything was sent
	core    quorum.Attempt
	raised  quorum.Set // the nodes that raiseLocked has asked
	sends   []quorum.Send
	slot    int64               // of the grant of a single node
	keeps   bool                // a lost attempt releases nothing: the owner has had the lock before
	reports []store.NodeOutcome // per node; empty if all simply granted
	waiting waitState           // unused if the attempt does not wait
}

// Acquire is one attempt; see store.Store. The request has been checked.
func (k *Driver[P]) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	a := k.beginAcquire(r)
	a.askUnlock(Question{Op: quorum.Acquire, Lease: a.r.Lease})
	k.readInline(ctx, a.over, nil)
	await(ctx, nil, a.over, r.TTL, a.step)
	a.mu.Lock()
	defer a.doneLocked()
	return a.resultLocked(ctx)
}

// beginAcquire begins an attempt that does not wait in the queue. Its mutex is held.
func (k *Driver[P]) beginAcquire(r store.AcquireRequest) *attempt[P] {
	start := k.Clock.Now()           // before anything is sent, since validity counts from here
	r.Slots, r.Repeated = nil, false // those of an earlier lease
	a := k.newAttempt(store.WaitRequest(r), start)
	a.core.Begin(k.config(r.Lease), r.TTL, start)
	return a
}

// resultLocked is the outcome of an attempt that did not wait in the queue.
func (a *attempt[P]) resultLocked(ctx context.Context) (store.Grant, error) {
	if a.core.Verdict() == quorum.Won {
		return a.grantLocked(), nil
	}
	return store.Grant{}, a.failureLocked(ctx)
}

// newAttempt returns an attempt whose only user is the caller, and whose mutex is held. The caller
// begins its core.
func (k *Driver[P]) newAttempt(r store.WaitRequest, start clock.Instant) *attempt[P] {
	a, ok := k.attempts.Get().(*attempt[P])
	if !ok {
		a = &attempt[P]{k: k, over: make(chan struct{}, 1)}
		a.alarm = newAlarm(a.tick)
	}
	a.mu.Lock()
	a.r, a.start, a.slot, a.keeps, a.raised, a.reports, a.users, a.waiting = r, start, 0, false, 0, a.reports[:0], 1, waitState{}
	return a
}

// askUnlock puts the first question, unlocks a, and has the question sent.
func (a *attempt[P]) askUnlock(q Question) {
	a.askAllLocked(q)
	a.mu.Unlock()
	a.k.flush()
}

// askAllLocked puts the first question, which is the same for all nodes.
func (a *attempt[P]) askAllLocked(q Question) {
	a.payload = a.k.Encode(q, a.payload)
	for i := range a.k.Nodes {
		a.putLocked(i, quorum.Acquire, a.payload, true)
	}
	a.armLocked(a.start)
}

// grantLocked is the grant of an attempt that is won.
func (a *attempt[P]) grantLocked() store.Grant {
	g := store.Grant{Lease: a.r.Lease, Token: fence.Token(a.core.Token()), Since: a.core.From().Sub(a.start)}
	g.Lease.Slots, g.Lease.Repeated = numbersOf(a.core.Slots()), a.core.Repeated()
	// Each of several nodes numbers readers as they come to it, so that their numbers mean nothing.
	switch {
	case len(a.k.Nodes) == 1:
		g.Slot = a.slot
	case len(g.Lease.Slots) > 0:
		g.Slot = g.Lease.Slots[0]
	}
	return g
}

// numbersOf returns the numbers of slots, which are the nodes' own text.
func numbersOf(slots string) []int64 {
	numbers, _ := rule.Slots(slots).Numbers()
	return numbers
}

// doneLocked ends one use of a and unlocks it. The user must not touch a afterwards.
func (a *attempt[P]) doneLocked() {
	done, g, err := a.endLocked()
	a.users--
	last := a.users == 0
	a.mu.Unlock()
	if last {
		a.k.attempts.Put(a)
	}
	if done != nil {
		done(g, err)
	}
}

// armLocked sets the alarm for when the machine next asks for a tick. For an attempt that has
// waited for long it is also set later: otherwise many waiters would wake up for nothing.
func (a *attempt[P]) armLocked(now clock.Instant) {
	if at, ok := a.core.Next(); ok && !a.waiting.reserved {
		a.alarm.set(at, now, a.waiting.refreshed)
	}
}

// tick is called by the alarm. The attempt that it was set for may be over.
func (a *attempt[P]) tick() {
	a.mu.Lock()
	a.alarm.at = 0
	if a.users == 0 || a.waiting.reserved {
		a.mu.Unlock()
		return
	}
	a.users++ // this function
	now := a.k.Clock.Now()
	a.applyLocked(quorum.Event{Kind: quorum.Tick}, now)
	a.k.ticked(a.over)
	a.armLocked(now)
	a.doneLocked()
}

func (a *attempt[P]) step(e quorum.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.applyLocked(e, a.k.Clock.Now())
}

// applyLocked steps the machine and puts the calls that it wants sent.
func (a *attempt[P]) applyLocked(e quorum.Event, now clock.Instant) {
	before := a.core.Verdict()
	a.sends = a.core.Step(e, now, a.sends[:0])
	if before == quorum.Open && a.core.Verdict() != quorum.Open {
		if a.done == nil {
			a.over <- struct{}{}
		}
	}
	if len(a.sends) > 0 {
		a.sendLocked(slices.Clone(a.sends), now) // putLocked may step the machine again
	}
	a.raiseLocked()
	if a.waiting.waits { // it may want the alarm earlier now
		a.armLocked(now)
	}
}

// raiseLocked has nodes that granted the lock, but are not needed, raise their counters to
// the token of the grant. Otherwise Inspect might take the counter of one for that token.
func (a *attempt[P]) raiseLocked() {
	behind := quorum.Behind(&a.core)
	for i := range a.k.Nodes {
		if behind.Has(i) {
			a.raiseNodeLocked(i)
		}
	}
}

func (a *attempt[P]) raiseNodeLocked(node int) {
	if a.raised.Has(node) {
		return
	}
	a.raised |= quorum.SetOf(node)
	q := Question{Op: quorum.Confirm, Lease: a.r.Lease, Token: a.core.Token()}
	q.Lease.Slots = numbersOf(a.core.Slots())
	a.putLocked(node, quorum.Confirm, payloadOf(a.k, q), false)
}

// sendLocked puts the calls that the machine wants sent.
func (a *attempt[P]) sendLocked(sends []quorum.Send, now clock.Instant) {
	var asking [4]P // payloads shared by several nodes
	var asked [4]bool
	for _, send := range sends {
		q := Question{Op: send.Op, Lease: a.r.Lease, Token: send.Token, Tombstone: send.Tombstone}
		q.Lease.Slots = numbersOf(send.Slots)
		switch send.Op {
		case quorum.Acquire:
			q.Exact = send.Slots != "" && !send.Wish
			q.Barge = a.k.Barge && a.waiting.competes(now)
			q.Waits, q.Again, q.QueueOnly, q.Stamp = a.waiting.waits, send.Again, send.QueueOnly, now
			a.waiting.refreshed = a.waiting.refreshed || send.Again
			which := 0
			if send.Again {
				which |= 1
			}
			if send.QueueOnly {
				which |= 2
			}
			if !asked[which] {
				asking[which], asked[which] = payloadOf(a.k, q), true
			}
			a.putLocked(send.Node, send.Op, asking[which], false)
			continue
		case quorum.Release:
			if a.keeps {
				continue
			}
			q.Renewed = send.AlwaysTombstone
			q.Undo = undoOwn && q.Lease.Attempt != ""
			if q.GivesWay = send.GivesWay; send.ToSenior {
				q.To = seniorTo(a.r.Owner, a.reports)
			}
		}
		a.putLocked(send.Node, send.Op, payloadOf(a.k, q), false)
	}
}

func (a *attempt[P]) putLocked(node int, op quorum.Op, payload P, more bool) {
	c := Call[P]{Payload: payload, Timeout: a.core.NodeTimeout, To: a, Tag: int(op), More: more}
	if err := a.k.Nodes[node].Put(c); err != nil {
		a.unsentLocked(node, op, err)
		return
	}
	a.users++
}

// unsentLocked steps the machine for a call that will never be sent.
func (a *attempt[P]) unsentLocked(node int, op quorum.Op, err error) {
	said := PutOutcome(err)
	a.noteLocked(node, said)
	e := quorum.Event{Kind: quorum.Unsent, Node: node, Op: op}
	if a.waiting.waits {
		e = a.eventLocked(e, Reply{Report: said})
	}
	a.applyLocked(e, a.k.Clock.Now())
}

// Receive implements Receiver.
func (a *attempt[P]) Receive(node, tag int, ans Reply) {
	a.mu.Lock()
	if a.done != nil && a.ctx.Err() != nil { // it was not watched
		a.applyLocked(quorum.Event{Kind: quorum.Cancel}, a.k.Clock.Now())
	}
	a.takeReplyLocked(node, tag, ans)
	if a.waiting.waits {
		a.reportLocked()
	}
	a.doneLocked()
}

// takeReplyLocked steps the machine with a reply.
func (a *attempt[P]) takeReplyLocked(node, tag int, ans Reply) {
	op := quorum.Op(tag)
	if op == quorum.Release {
		if ans.Kind == quorum.Unsent || ans.Kind == quorum.Unknown {
			a.k.Logger.Debug("partial grant may remain on node until its TTL expires", "lock", a.r.Name, "node", a.k.Nodes[node].Addr(), "err", ans.Report.Err)
		}
		return
	}
	at := a.k.receivedAt(ans)
	jumped := a.k.checkClock(node, ans, a.core.AskedAt(node), at)
	if jumped != nil && ans.Kind == quorum.Yes && op == quorum.Acquire {
		a.k.uncounted.add(node, a.r.Lease, at, at.Add(jumped.left))
		// The node is released as if the outcome were unknown.
		if ans.Kind = quorum.Unknown; a.waiting.waits {
			ans.Kind = quorum.Discounted
		}
		ans.Report = jumped.Outcome()
	}
	a.noteLocked(node, ans.Report)
	if op == quorum.Acquire && ans.Kind == quorum.Yes {
		a.slot = ans.Slot
	}
	e := quorum.Event{Kind: ans.Kind, Node: node, Op: op, Token: ans.Token, Slots: ans.Slots}
	if a.waiting.waits {
		e = a.eventLocked(e, ans)
	}
	if e.Uncounted = jumped != nil; e.Uncounted {
		e.RetryAfter = min(e.RetryAfter, jumped.left+afterExpiry)
	}
	a.applyLocked(e, at)
}

// noteLocked keeps the report of a node.
func (a *attempt[P]) noteLocked(node int, said store.NodeOutcome) {
	if len(a.reports) == 0 {
		if said.Outcome == store.Granted {
			return
		}
		a.reports = clearOutcomes(a.reports, len(a.k.Nodes))
	}
	a.reports[node] = said
}

// failureLocked is the error of a lost attempt.
func (a *attempt[P]) failureLocked(ctx context.Context) error {
	nodes := describe(a.k.Nodes, a.reports, &a.core)
	need := quorum.Majority(len(nodes))
	if busy := newBusyError(a.r.Name, nodes, need); busy != nil {
		return busy
	}
	if err := kindErrorOf(a.r.Lease, nodes); err != nil {
		return err
	}
	err := &store.QuorumError{Op: "acquire", Name: a.r.Name, Need: need, Nodes: nodes}
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", ctx.Err(), err)
	}
	return err
}
