package redis

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
// verdict, until every node has answered and what has to be is released.
type attempt struct {
	s     *Store
	r     store.Request
	value string
	over  chan struct{} // closed with the verdict

	mu    sync.Mutex
	core  quorum.Attempt
	sends []quorum.Send
	said  []store.NodeOutcome // as far as they did not simply grant
}

// Acquire implements store.Store.
func (s *Store) Acquire(ctx context.Context, r store.Request) (store.Grant, error) {
	if err := s.check(ctx, r); err != nil {
		return store.Grant{}, err
	}
	start := s.o.Clock.Now()
	config := quorum.Config{Nodes: len(s.nodes), NodeTimeout: s.o.nodeTimeout(r.TTL)}
	a := &attempt{s: s, r: r, value: encodeValue(r), over: make(chan struct{}), core: quorum.NewAttempt(config, r.TTL, start)}
	command := acquireCall(r, a.value, time.Now()) // the same for all nodes
	a.mu.Lock()
	for i := range s.nodes {
		a.put(i, quorum.Acquire, command)
	}
	a.mu.Unlock()

	await(ctx, s.o.Clock, a.over, a.next, a.step)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.core.Verdict() == quorum.Won {
		return store.Grant{Token: fence.Token(a.core.Token())}, nil
	}
	return store.Grant{}, a.failure(ctx)
}

// check refuses what is not to be sent.
func (s *Store) check(ctx context.Context, r store.Request) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return r.Check(s.o.MaxTTL)
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
	a.sends = a.core.Step(e, a.s.o.Clock.Now(), a.sends[:0])
	if before == quorum.Open && a.core.Verdict() != quorum.Open {
		close(a.over)
	}
	for _, send := range slices.Clone(a.sends) {
		switch send.Op {
		case quorum.Confirm:
			a.put(send.Node, send.Op, confirmCall(a.r, a.value, send.Token))
		case quorum.Release:
			a.put(send.Node, send.Op, releaseCall(a.r, a.value, send.Tomb))
		}
	}
}

func (a *attempt) put(node int, op quorum.Op, command []string) {
	c := call{command: command, timeout: a.core.NodeTimeout, to: a, tag: int(op)}
	if err := a.s.put(node, c); err != nil {
		a.note(node, store.NodeOutcome{Outcome: store.Unreachable, Err: err})
		a.apply(quorum.Event{Kind: quorum.Unsent, Node: node, Op: op})
	}
}

// answer implements receiver.
func (a *attempt) answer(node, tag int, ans answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	op := quorum.Op(tag)
	v, said := ans.verdict()
	if op == quorum.Release {
		if ans.outcome != store.Granted {
			a.s.o.Logger.Debug("a node kept part of a lock that was not got: it ends there by its TTL", "lock", a.r.Name, "node", a.s.nodes[node].addr, "err", ans.err)
		}
		return
	}
	a.note(node, said)
	a.apply(quorum.Event{Kind: v.kind, Node: node, Op: op, Token: v.token})
}

// note keeps what a node said.
func (a *attempt) note(node int, said store.NodeOutcome) {
	if a.said == nil {
		if said.Outcome == store.Granted {
			return
		}
		a.said = make([]store.NodeOutcome, len(a.s.nodes))
	}
	a.said[node] = said
}

// failure is the error of a lost attempt. The mutex is held.
func (a *attempt) failure(ctx context.Context) error {
	nodes := a.s.evidence(a.said, &a.core)
	healthy := 0
	for _, n := range nodes {
		if n.Outcome == store.Granted || n.Outcome == store.Taken {
			healthy++
		}
	}
	need := quorum.Majority(len(nodes))
	if busy := busyError(a.r.Name, nodes, need); busy != nil && healthy >= need {
		return busy
	}
	err := &store.QuorumError{Op: "acquire", Name: a.r.Name, Need: need, Nodes: nodes}
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", ctx.Err(), err)
	}
	return err
}
