package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/view"
)

// waitForQuorum waits until a quorum of different servers is up.
func (s *engine) waitForQuorum(ctx context.Context) error {
	nodes := s.outcomes()
	// Once a majority is up, the other nodes get a little more time only: a node that is
	// down must not delay each start of a program by a whole connect timeout.
	until, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var up quorum.Set
	cfg, start := s.quorumConfig(), time.Now()
	err := s.ask(until, pingCommand, s.o.ConnectTimeout, func(a looked) {
		nodes[a.node].Node = s.nodes[a.node].Addr() // sentinels may have named the server only now
		nodes[a.node].Outcome, nodes[a.node].Err = a.Outcome, a.Err
		if a.Outcome == store.Granted || script.IsDenied(a.Err) {
			nodes[a.node].Outcome, nodes[a.node].Err = store.Granted, nil
			had := cfg.HasQuorum(up)
			up |= quorum.SetOf(a.node)
			if !had && cfg.HasQuorum(up) {
				moment := min(max(4*time.Since(start), 20*time.Millisecond), 100*time.Millisecond)
				time.AfterFunc(moment, func() { cancel(nil) })
			}
		}
	})
	e := &store.QuorumError{Op: "open", Store: "redis", Need: quorum.Majority(len(s.nodes)), Nodes: nodes}
	switch {
	case slices.ContainsFunc(nodes, func(n store.NodeOutcome) bool { return errors.Is(n.Err, membership.ErrSameServer) }):
		return e
	case cfg.HasQuorum(up):
		return nil
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("%w (%w)", ctx.Err(), e)
	}
	return e
}

// Inspect implements driver.Engine. A lock is held if one owner has it on a majority of the
// nodes. While nodes do not answer, it may be undecided whether an owner has one. If too few
// answer, the state is what the others know.
func (s *engine) Inspect(ctx context.Context, name string) (store.State, error) {
	state, _, err := s.inspect(ctx, name)
	return state, err
}

// inspect does what Inspect does, and also returns what each node showed.
func (s *engine) inspect(ctx context.Context, name string) (store.State, view.View, error) {
	state, seen := store.State{Name: name}, view.New(s.quorumConfig())
	if err := s.usable(ctx); err != nil {
		return state, seen, err
	}
	for i, v := range s.voters {
		seen.Nodes[i].Node = v.Addr()
	}
	err := s.ask(ctx, s.inspectCommand(name), s.nodeTimeout(s.o.MaxTTL), func(a looked) {
		said, token, queue := a.Look()
		if a.node < len(s.nodes) {
			said = s.nodes[a.node].shows(said)
		}
		said.Node = seen.Nodes[a.node].Node
		seen.Nodes[a.node], seen.Tokens[a.node], seen.Queues[a.node], seen.Notes[a.node], seen.Records[a.node] = said, token, queue, a.Note(), a.Record()
	})
	if err != nil {
		return state, seen, err
	}
	var few error
	if nodes := seen.Nodes; !view.Answered(seen.Config, nodes) {
		few = &store.QuorumError{Op: "inspect", Name: name, Need: quorum.Majority(len(nodes)), Nodes: nodes}
		if len(nodes) == 1 {
			return state, seen, few
		}
	}
	return seen.State(name), seen, few
}

// askSingle returns the askFunc of a store with one server.
func askSingle(s *engine) askFunc {
	return func(ctx context.Context, _ string, c *script.Command) (script.Reply, string) {
		n := s.nodes[0]
		return askBy(ctx, n.put, call{command: c, timeout: s.nodeTimeout(s.o.MaxTTL)}), n.Addr()
	}
}
