package majority

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// attempt drives one quorum.Attempt: it carries the messages, and keeps what
// the nodes said for the error. It goes on living after the caller has its
// verdict, until every node has answered and what has to be is released.
type attempt struct {
	k    *Keeper
	r    store.Request
	over chan struct{} // closed with the verdict

	mu    sync.Mutex
	core  quorum.Attempt
	sends []quorum.Send
	said  []store.NodeOutcome // as far as they did not simply grant
}

// Acquire is one attempt; see store.Store. The request has been checked.
func (k *Keeper) Acquire(ctx context.Context, r store.Request) (store.Grant, error) {
	start := k.Clock.Now() // before anything is sent: validity counts from here
	a := &attempt{k: k, r: r, over: make(chan struct{}), core: quorum.NewAttempt(k.config(r), r.TTL, start)}
	payload := k.Encode(Question{Op: quorum.Acquire, Lease: r}) // the same for all nodes
	a.mu.Lock()
	for i := range k.Nodes {
		a.put(i, quorum.Acquire, payload)
	}
	a.mu.Unlock()

	await(ctx, k.Clock, a.over, a.next, a.step)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.core.Verdict() == quorum.Won {
		return store.Grant{Token: fence.Token(a.core.Token())}, nil
	}
	return store.Grant{}, a.failure(ctx)
}

func (a *attempt) next() (clock.Instant, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.core.Next()
}

func (a *attempt) step(e quorum.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.apply(e)
}

// apply steps the machine and puts in line what it wants sent. The mutex is
// held.
func (a *attempt) apply(e quorum.Event) {
	before := a.core.Verdict()
	a.sends = a.core.Step(e, a.k.Clock.Now(), a.sends[:0])
	if before == quorum.Open && a.core.Verdict() != quorum.Open {
		close(a.over)
	}
	for _, send := range slices.Clone(a.sends) { // put may step the machine again
		a.put(send.Node, send.Op, a.k.Encode(Question{Op: send.Op, Lease: a.r, Token: send.Token, Tomb: send.Tomb}))
	}
}

func (a *attempt) put(node int, op quorum.Op, payload any) {
	c := Call{Payload: payload, Timeout: a.core.NodeTimeout, To: a, Tag: int(op)}
	if err := a.k.Nodes[node].Put(c); err != nil {
		a.note(node, store.NodeOutcome{Outcome: store.Unreachable, Err: err})
		a.apply(quorum.Event{Kind: quorum.Unsent, Node: node, Op: op})
	}
}

// Answer implements Receiver.
func (a *attempt) Answer(node, tag int, ans Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	op := quorum.Op(tag)
	if op == quorum.Release {
		if ans.Kind == quorum.Unsent || ans.Kind == quorum.Unknown {
			a.k.Logger.Debug("a node may keep part of a lock that was not got: it ends there by its TTL", "lock", a.r.Name, "node", a.k.Nodes[node].Addr(), "err", ans.Said.Err)
		}
		return
	}
	a.note(node, ans.Said)
	a.apply(quorum.Event{Kind: ans.Kind, Node: node, Op: op, Token: ans.Token})
}

// note keeps what a node said.
func (a *attempt) note(node int, said store.NodeOutcome) {
	if a.said == nil {
		if said.Outcome == store.Granted {
			return
		}
		a.said = make([]store.NodeOutcome, len(a.k.Nodes))
	}
	a.said[node] = said
}

// failure is the error of a lost attempt. The mutex is held.
func (a *attempt) failure(ctx context.Context) error {
	nodes := a.k.evidence(a.said, &a.core)
	need := quorum.Majority(len(nodes))
	if busy := BusyError(a.r.Name, nodes, need); busy != nil {
		return busy
	}
	err := &store.QuorumError{Op: "acquire", Name: a.r.Name, Need: need, Nodes: nodes}
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", ctx.Err(), err)
	}
	return err
}
