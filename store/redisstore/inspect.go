package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// waitForQuorum waits until a quorum of different servers is up.
func (s *Store) waitForQuorum(ctx context.Context) error {
	nodes := make([]store.NodeOutcome, len(s.nodes))
	for i, n := range s.nodes {
		nodes[i].Node = n.Addr()
	}
	// Once a majority is up, the other nodes get a little more time only: a node that is
	// down must not delay each start of a program by a whole connect timeout.
	until, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	up, start := 0, time.Now()
	err := s.ask(until, pingCommand, s.o.ConnectTimeout, func(a looked) {
		nodes[a.node].Node = s.nodes[a.node].Addr() // sentinels may have named the server only now
		nodes[a.node].Outcome, nodes[a.node].Err = a.Outcome, a.Err
		if a.Outcome == store.Granted || script.IsDenied(a.Err) {
			nodes[a.node].Outcome, nodes[a.node].Err = store.Granted, nil
			if up++; up == quorum.Majority(len(s.nodes)) {
				moment := min(max(4*time.Since(start), 20*time.Millisecond), 100*time.Millisecond)
				time.AfterFunc(moment, func() { cancel(nil) })
			}
		}
	})
	e := &store.QuorumError{Op: "open", Need: quorum.Majority(len(s.nodes)), Nodes: nodes}
	switch {
	case slices.ContainsFunc(nodes, func(n store.NodeOutcome) bool { return errors.Is(n.Err, membership.ErrSameServer) }):
		return e
	case up >= e.Need:
		return nil
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("%w (%w)", ctx.Err(), e)
	}
	return e
}

// Inspect implements store.Store. A lock is held if one owner has it on a majority of the
// nodes.
func (s *Store) Inspect(ctx context.Context, name string) (store.State, error) {
	state, _, err := s.inspect(ctx, name)
	return state, err
}

// views is what each node showed of a lock: its first holder and the token of that, and the
// record of a lock that several can hold.
type views struct {
	nodes   []store.NodeOutcome
	tokens  []fence.Token
	records []*script.Record
}

// inspect is Inspect. It also returns what each node showed.
func (s *Store) inspect(ctx context.Context, name string) (store.State, views, error) {
	state := store.State{Name: name}
	if err := cmp.Or(s.usable(ctx), store.CheckName(name)); err != nil {
		return state, views{}, err
	}
	nodes := make([]store.NodeOutcome, len(s.quorumNodes))
	tokens := make([]fence.Token, len(s.quorumNodes))
	queues := make([][]store.Place, len(s.quorumNodes))
	notes := make([]*store.Broken, len(s.quorumNodes))
	records := make([]*script.Record, len(s.quorumNodes))
	for i, v := range s.quorumNodes {
		nodes[i].Node = v.Addr()
	}
	err := s.ask(ctx, s.inspectCommand(name), s.o.TimeoutFor(s.o.MaxTTL), func(a looked) {
		said, token, queue := a.Look()
		said.Node = nodes[a.node].Node
		nodes[a.node], tokens[a.node], queues[a.node], notes[a.node] = said, token, queue, a.Note()
		records[a.node] = a.Record()
	})
	if err != nil {
		return state, views{}, err
	}
	cfg := quorum.Config{Nodes: len(nodes), Sets: s.membership.Sets}
	if !enoughAnswered(cfg, nodes) {
		return state, views{}, &store.QuorumError{Op: "inspect", Name: name, Need: quorum.Majority(len(nodes)), Nodes: nodes}
	}
	state = stateOf(name, cfg, nodes, tokens, queues)
	if len(nodes) == 1 {
		records[0].Show(&state)
	} else {
		showShares(&state, cfg, nodes, records, tokens, queues)
	}
	state.Broken = noted(notes)
	return state, views{nodes, tokens, records}, nil
}

// enoughAnswered reports whether a quorum of nodes said who holds the lock.
func enoughAnswered(cfg quorum.Config, nodes []store.NodeOutcome) bool {
	var answered quorum.Set
	for i, n := range nodes {
		if n.Outcome == store.Taken || n.Outcome == store.Absent || n.Outcome == store.Quarantined {
			answered |= quorum.SetOf(i)
		}
	}
	return cfg.HasQuorum(answered)
}

// stateOf combines what the nodes said about a lock: the outcome, the holder's token and
// the queue of waiters of each node.
func stateOf(name string, cfg quorum.Config, nodes []store.NodeOutcome, tokens []fence.Token, queues [][]store.Place) store.State {
	state := store.State{Name: name}
	if len(nodes) > 1 {
		state.Nodes = nodes
	}
	// In a joint configuration, a majority of either membership is enough: the holder may
	// know only that one.
	for _, set := range cfg.JointSets() {
		need := quorum.Majority(set.Size())
		for _, n := range nodes {
			if owned := ownedBy(n.Holder, set, nodes); n.Outcome == store.Taken && len(owned) >= need {
				state.Held, state.Holder = true, n.Holder
				state.Token = agreed(owned, tokens, need)
				state.ExpiresIn = heldFor(owned, nodes, need)
				state.HeldFor = store.HeldFor(state.Token, state.Holder, time.Now())
				state.Queue = mergeQueues(queues, n.Holder.Owner)
				return state
			}
		}
	}
	state.Queue = mergeQueues(queues, "")
	return state
}

// agreed returns the token of the grant: the one that a majority of the owned nodes has. If
// some are silent, there may be none. Then it is the smallest, since a grant raises the
// counters of the nodes that are behind its token, and leaves alone those that are ahead.
func agreed(owned []int, tokens []fence.Token, need int) fence.Token {
	at := make([]fence.Token, len(owned))
	for i, n := range owned {
		at[i] = tokens[n]
	}
	slices.Sort(at)
	for i := range len(at) - need + 1 {
		if at[i] == at[i+need-1] {
			return at[i]
		}
	}
	return at[0]
}

// ownedBy returns the nodes of a set on which holder has the lock.
func ownedBy(holder store.Holder, set quorum.Set, nodes []store.NodeOutcome) (owned []int) {
	for i, n := range nodes {
		if set.Has(i) && n.Outcome == store.Taken && n.Holder.Owner == holder.Owner {
			owned = append(owned, i)
		}
	}
	return owned
}

// heldFor returns how long the holder keeps its majority if it does not renew: until
// fewer than need of its nodes are left. It is negative if the lock never expires.
func heldFor(owned []int, nodes []store.NodeOutcome, need int) time.Duration {
	left := make([]time.Duration, len(owned))
	for i, n := range owned {
		left[i] = nodes[n].ExpiresIn
	}
	// Sort the longest first. Leases that never expire (negative) come before all others.
	slices.SortFunc(left, func(a, b time.Duration) int { return cmp.Compare(uint64(b), uint64(a)) })
	return left[need-1]
}

// askSingle returns the askFunc of a store with one server.
func askSingle(s *Store) askFunc {
	return func(ctx context.Context, _ string, c *script.Command) (script.Reply, string) {
		n := s.nodes[0]
		return askBy(ctx, n.put, call{command: c, timeout: s.o.TimeoutFor(s.o.MaxTTL)}), n.Addr()
	}
}

// noted returns the note about the lease that was broken last: of the latest lease, what
// most nodes have.
func noted(notes []*store.Broken) (found *store.Broken) {
	most := 0
	for _, b := range notes {
		n := 0
		for _, o := range notes {
			if b != nil && o != nil && *o == *b {
				n++
			}
		}
		if b != nil && (found == nil || b.Token > found.Token || b.Token == found.Token && n > most) {
			found, most = b, n
		}
	}
	return found
}
