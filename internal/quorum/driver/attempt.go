package driver

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// attempt drives one quorum.Attempt: it carries the messages, and keeps what
// the nodes said for the error. It goes on living after the caller has its
// verdict, until every node has answered and what has to be is released. Then
// its memory serves another one.
type attempt struct {
	k       *Driver
	over    chan struct{} // gets one with the verdict
	timer   *time.Timer
	payload any // of the acquire

	reporting sync.Mutex // held by who tells why it was not granted yet; see inform

	mu      sync.Mutex
	users   int // the caller, and every call under way
	r       store.Request
	start   clock.Instant // before anything was sent
	core    quorum.Attempt
	sends   []quorum.Send
	reports []store.NodeOutcome // as far as they did not simply grant; empty if all did
	waiting waitState           // of one that waits
}

// Acquire is one attempt; see store.Store. The request has been checked.
func (k *Driver) Acquire(ctx context.Context, r store.Request) (store.Grant, error) {
	start := k.Clock.Now() // before anything is sent: validity counts from here
	a := k.newAttempt(r, start)
	a.core.Begin(k.config(r), r.TTL, start)
	a.askAll(Question{Op: quorum.Acquire, Lease: r})
	k.readInline(ctx, a.over, nil)
	await(ctx, nil, k.Clock, start, a.over, a.timer, a, nil)
	a.mu.Lock()
	defer a.doneLocked()
	if a.core.Verdict() == quorum.Won {
		return a.grantLocked(), nil
	}
	return store.Grant{}, a.failureLocked(ctx)
}

// begin makes an attempt whose only user is the caller, who begins its core.
func (k *Driver) newAttempt(r store.Request, start clock.Instant) *attempt {
	a, ok := k.attempts.Get().(*attempt)
	if !ok {
		a = &attempt{k: k, over: make(chan struct{}, 1), timer: stoppedTimer()}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.r, a.start, a.reports, a.users, a.waiting = r, start, a.reports[:0], 1, waitState{}
	return a
}

// ask puts the first question to all nodes, which is the same for all of them.
func (a *attempt) askAll(q Question) {
	a.mu.Lock()
	a.payload = a.k.Encode(q, a.payload)
	for i := range a.k.Nodes {
		a.putLocked(i, quorum.Acquire, a.payload, true)
	}
	a.mu.Unlock()
	a.k.flush()
}

// reserved is how many tokens below that of a grant are its own as well.
func (a *attempt) reservedLocked(ans Reply) uint64 {
	asked := uint64(a.r.Spare)
	if ans.Counted {
		return min(ans.Reserved, asked)
	}
	return asked
}

// grant is what was won. The nodes count up to the largest token of it.
func (a *attempt) grantLocked() store.Grant {
	spare := a.core.Reserved()
	return store.Grant{
		Token:    fence.Token(a.core.Token() - spare),
		Spare:    int(spare),
		Owner:    a.r.Owner,
		Since:    a.core.From().Sub(a.start),
		Repeated: a.core.Repeated(),
	}
}

// leave unlocks, and is the last thing that a user of a does.
func (a *attempt) doneLocked() {
	a.users--
	last := a.users == 0
	a.mu.Unlock()
	if last {
		a.k.attempts.Put(a)
	}
}

func (a *attempt) next() (clock.Instant, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting.waits { // what nodes say may want it earlier at any time
		a.waiting.timerAt = 0
		a.armLocked(a.k.Clock.Now())
		return 0, false
	}
	return a.core.Next()
}

func (a *attempt) step(e quorum.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.applyLocked(e, a.k.Clock.Now())
}

// apply steps the machine and puts in line what it wants sent. The mutex is
// held.
func (a *attempt) applyLocked(e quorum.Event, now clock.Instant) {
	before := a.core.Verdict()
	a.sends = a.core.Step(e, now, a.sends[:0])
	if before == quorum.Open && a.core.Verdict() != quorum.Open {
		a.over <- struct{}{}
	}
	if len(a.sends) > 0 {
		a.sendLocked(slices.Clone(a.sends), now) // put may step the machine again
	}
	if a.waiting.waits && !a.waiting.reserved {
		a.armLocked(now)
	}
}

// send puts in line what the machine wants sent. The mutex is held.
func (a *attempt) sendLocked(sends []quorum.Send, now clock.Instant) {
	var asking [4]any // the same question to several nodes
	for _, send := range sends {
		q := Question{Op: send.Op, Lease: a.r, Token: send.Token, Tomb: send.Tomb}
		switch send.Op {
		case quorum.Acquire:
			q.Lease.Barge = a.bargesLocked(now)
			q.Waits, q.Again, q.QueueOnly, q.Stamp = true, send.Again, send.QueueOnly, now
			a.waiting.refreshed = a.waiting.refreshed || send.Again
			which := 0
			if send.Again {
				which |= 1
			}
			if send.QueueOnly {
				which |= 2
			}
			payload := &asking[which]
			if *payload == nil {
				*payload = a.k.Encode(q, nil)
			}
			a.putLocked(send.Node, send.Op, *payload, false)
			continue
		case quorum.Release:
			q.Lease.Renewed = q.Lease.Renewed || send.AlwaysTomb
			q.Lease.Undo = undoOwn && q.Lease.Attempt != ""
			if q.GivesWay = send.GivesWay; send.ToSenior {
				q.To = a.seniorLocked()
			}
		}
		a.putLocked(send.Node, send.Op, a.k.Encode(q, nil), false)
	}
}

func (a *attempt) putLocked(node int, op quorum.Op, payload any, more bool) {
	c := Call{Payload: payload, Timeout: a.core.NodeTimeout, To: a, Tag: int(op), More: more}
	if err := a.k.Nodes[node].Put(c); err != nil {
		a.unsentLocked(node, op, err)
		return
	}
	a.users++
}

// unsent takes in that a question will never be asked. The mutex is held.
func (a *attempt) unsentLocked(node int, op quorum.Op, err error) {
	a.noteLocked(node, PutOutcome(err))
	a.applyLocked(a.eventLocked(quorum.Event{Kind: quorum.Unsent, Node: node, Op: op}, Reply{Report: PutOutcome(err)}), a.k.Clock.Now())
}

// Receive implements Receiver.
func (a *attempt) Receive(node, tag int, ans Reply) {
	a.mu.Lock()
	a.takeReplyLocked(node, tag, ans)
	a.reportLocked(a.newsLocked())
	a.doneLocked()
}

// hear takes in an answer. The mutex is held.
func (a *attempt) takeReplyLocked(node, tag int, ans Reply) {
	op := quorum.Op(tag)
	if op == quorum.Release {
		if ans.Kind == quorum.Unsent || ans.Kind == quorum.Unknown {
			a.k.Logger.Debug("a node may keep part of a lock that was not got: it ends there by its TTL", "lock", a.r.Name, "node", a.k.Nodes[node].Addr(), "err", ans.Report.Err)
		}
		return
	}
	at := a.k.receivedAt(ans)
	if err := a.k.checkClock(node, ans, a.core.AskedAt(node), at); err != nil && ans.Kind == quorum.Yes && op == quorum.Acquire {
		// It is to be released there, as if nobody knew whether it was granted.
		if ans.Kind = quorum.Unknown; a.waiting.waits {
			ans.Kind = quorum.Discounted
		}
		ans.Report = err.outcome()
	}
	a.noteLocked(node, ans.Report)
	a.applyLocked(a.eventLocked(quorum.Event{Kind: ans.Kind, Node: node, Op: op, Token: ans.Token, Reserved: a.reservedLocked(ans)}, ans), at)
}

// note keeps what a node said.
func (a *attempt) noteLocked(node int, said store.NodeOutcome) {
	if len(a.reports) == 0 {
		if said.Outcome == store.Granted {
			return
		}
		a.reports = clearOutcomes(a.reports, len(a.k.Nodes))
	}
	a.reports[node] = said
}

// failure is the error of a lost attempt. The mutex is held.
func (a *attempt) failureLocked(ctx context.Context) error {
	nodes := a.k.describe(a.reports, &a.core)
	need := quorum.Majority(len(nodes))
	if busy := newBusyError(a.r.Name, nodes, need); busy != nil {
		return busy
	}
	err := &store.QuorumError{Op: "acquire", Name: a.r.Name, Need: need, Nodes: nodes}
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", ctx.Err(), err)
	}
	return err
}
