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
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/node"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/view"
)

// waitForQuorum waits until a quorum of different servers is up.
func (s *engine) waitForQuorum(ctx context.Context) error {
	nodes := s.Outcomes()
	// Once a majority is up, the other nodes get a little more time only: a node that is
	// down must not delay each start of a program by a whole connect timeout.
	until, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var up quorum.Set
	cfg, start := s.QuorumConfig(), time.Now()
	err := s.Ask(until, node.PingCommand, s.Config.ConnectTimeout, func(a node.Answer) {
		nodes[a.Node].Node = s.Nodes[a.Node].Addr() // sentinels may have named the server only now
		nodes[a.Node].Outcome, nodes[a.Node].Err = a.Outcome, a.Err
		if a.Outcome == store.Granted || script.IsDenied(a.Err) {
			nodes[a.Node].Outcome, nodes[a.Node].Err = store.Granted, nil
			had := cfg.HasQuorum(up)
			up |= quorum.SetOf(a.Node)
			if !had && cfg.HasQuorum(up) {
				moment := min(max(4*time.Since(start), 20*time.Millisecond), 100*time.Millisecond)
				time.AfterFunc(moment, func() { cancel(nil) })
			}
		}
	})
	e := &store.QuorumError{Op: "open", Store: "redis", Need: quorum.Majority(len(s.Nodes)), Nodes: nodes}
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
	state, seen := store.State{Name: name}, view.New(s.QuorumConfig())
	if s.prepare != nil {
		s.prepare(ctx, name)
	}
	for i, v := range s.Voters {
		seen.Nodes[i].Node = v.Addr()
	}
	err := s.Ask(ctx, s.InspectCommand(name), s.NodeTimeout(s.Config.MaxTTL), func(a node.Answer) {
		said, token, queue := a.Look()
		if a.Node < len(s.Nodes) {
			said = s.Nodes[a.Node].Shows(said)
		}
		said.Node = seen.Nodes[a.Node].Node
		seen.Nodes[a.Node], seen.Tokens[a.Node], seen.Queues[a.Node], seen.Notes[a.Node], seen.Records[a.Node] = said, token, queue, a.Note(), a.Record()
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

// askSingle is askLock of a store with one server.
func (s *engine) askSingle(ctx context.Context, _ string, c *script.Command) (script.Reply, string) {
	n := s.Nodes[0]
	return node.AskBy(ctx, n.Enqueue, node.Call{Command: c, Timeout: s.NodeTimeout(s.Config.MaxTTL)}), n.Addr()
}
