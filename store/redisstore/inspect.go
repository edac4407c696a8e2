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
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
)

// poll gathers the answers of nodes that are merely looked at, where a slow
// node's answer is worth waiting for.
type poll chan looked

type looked struct {
	node int
	reply
}

// ask sends command to the nodes and calls each for every answer, until all
// are in or ctx ends.
func (s *Store) ask(ctx context.Context, command *command, timeout time.Duration, each func(looked)) error {
	p := make(poll, len(s.nodes)) // room for all: a late answer blocks nobody
	for i, n := range s.nodes {
		if err := n.put(call{command: command, timeout: timeout, look: p}, false); err != nil {
			said := driver.PutOutcome(err)
			p <- looked{i, reply{outcome: said.Outcome, err: said.Err}}
		}
	}
	for range s.nodes {
		select {
		case l := <-p:
			each(l)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// muster looks that enough nodes are there and are different servers.
func (s *Store) muster(ctx context.Context) error {
	nodes := make([]store.NodeOutcome, len(s.nodes))
	for i, n := range s.nodes {
		nodes[i].Node = n.Addr()
	}
	// With a majority there, the others get a moment more: one that is down
	// must not cost every start of a program a whole connect timeout.
	settle, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	up, start := 0, time.Now()
	err := s.ask(settle, pingCommand, s.o.ConnectTimeout, func(a looked) {
		nodes[a.node].Node = s.nodes[a.node].Addr() // who it is may have turned out only now
		nodes[a.node].Outcome, nodes[a.node].Err = a.outcome, a.err
		if a.outcome == store.Granted || a.err != nil && isDenied(a.err.Error()) {
			nodes[a.node].Outcome, nodes[a.node].Err = store.Granted, nil
			if up++; up == quorum.Majority(len(s.nodes)) {
				moment := min(max(4*time.Since(start), 20*time.Millisecond), 100*time.Millisecond)
				time.AfterFunc(moment, func() { cancel(nil) })
			}
		}
	})
	e := &store.QuorumError{Op: "open", Need: quorum.Majority(len(s.nodes)), Nodes: nodes}
	switch {
	case slices.ContainsFunc(nodes, func(n store.NodeOutcome) bool { return errors.Is(n.Err, errSameServer) }):
		return e
	case up >= e.Need:
		return nil
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("%w (%w)", ctx.Err(), e)
	}
	return e
}

// Inspect implements store.Store. A lock is held if one owner has it on a
// majority of the nodes.
func (s *Store) Inspect(ctx context.Context, name string) (store.State, error) {
	state := store.State{Name: name}
	if err := cmp.Or(s.usable(ctx), store.CheckName(name)); err != nil {
		return state, err
	}
	nodes := make([]store.NodeOutcome, len(s.nodes))
	tokens := make([]fence.Token, len(s.nodes))
	lines := make([][]store.Place, len(s.nodes))
	for i, n := range s.nodes {
		nodes[i].Node = n.Addr()
	}
	err := s.ask(ctx, s.inspectCall(name), s.o.nodeTimeout(s.o.MaxTTL), func(a looked) {
		said, token, line := a.look()
		said.Node = nodes[a.node].Node
		nodes[a.node], tokens[a.node], lines[a.node] = said, token, line
	})
	if err != nil {
		return state, err
	}
	cfg := quorum.Config{Nodes: len(nodes), Sets: s.lists.sets}
	if !enoughAnswered(cfg, nodes) {
		return state, &store.QuorumError{Op: "inspect", Name: name, Need: quorum.Majority(len(nodes)), Nodes: nodes}
	}
	return stateOf(name, cfg, nodes, tokens, lines), nil
}

// enoughAnswered reports whether the nodes that said who has a lock are a majority.
func enoughAnswered(cfg quorum.Config, nodes []store.NodeOutcome) bool {
	var answered quorum.Set
	for i, n := range nodes {
		if n.Outcome == store.Taken || n.Outcome == store.Absent || n.Outcome == store.Quarantined {
			answered |= quorum.SetOf(i)
		}
	}
	return cfg.HasQuorum(answered)
}

// stateOf is what the nodes make of a lock, of which each said its outcome, the token of
// its holder, and the line.
func stateOf(name string, cfg quorum.Config, nodes []store.NodeOutcome, tokens []fence.Token, lines [][]store.Place) store.State {
	state := store.State{Name: name}
	if len(nodes) > 1 {
		state.Nodes = nodes
	}
	// While one list replaces another, a majority of either will do: its client
	// may know no other.
	for _, set := range cfg.JointSets() {
		need := quorum.Majority(set.Size())
		for _, n := range nodes {
			if owned := ownedBy(n.Holder, set, nodes); n.Outcome == store.Taken && len(owned) >= need {
				state.Held, state.Holder = true, n.Holder
				state.Token = agreed(owned, tokens, need)
				state.ExpiresIn = heldFor(owned, nodes, need)
				state.Line = mergeLines(lines, n.Holder.Owner)
				return state
			}
		}
	}
	state.Line = mergeLines(lines, "")
	return state
}

// agreed is the token that a majority of the owned nodes stands at. A node that
// joined after the grant may stand higher or lower.
func agreed(owned []int, tokens []fence.Token, need int) fence.Token {
	at := make([]fence.Token, len(owned))
	for i, n := range owned {
		at[i] = tokens[n]
	}
	slices.Sort(at)
	return at[need-1]
}

// look reads the answer of the inspect script.
func (a reply) look() (said store.NodeOutcome, token fence.Token, line []store.Place) {
	if a.outcome != store.Granted {
		return store.NodeOutcome{Outcome: a.outcome, Err: a.err}, 0, nil
	}
	switch v := a.value.list; {
	case len(v) == 5:
		return shutFor(v[2], v[3], store.NodeOutcome{Outcome: store.Absent}), 0, placesOf(v[4].list)
	case len(v) == 7 && v[1].kind == '$' && v[2].kind == ':':
		if token, ok := v[3].number(); ok {
			said := takenBy(v[1], v[2])
			return said, ownToken(said.Holder, token), placesOf(v[6].list)
		}
	}
	return store.NodeOutcome{Outcome: store.Refused, Err: notUnderstood(a.value)}, 0, nil
}

// ownToken is the token of the holder's grant, by the counter, which stands at the last
// of those that were reserved with it. If the holder has reserved more since, it is one
// of its tokens all the same. Another kind of client has none.
func ownToken(h store.Holder, counter uint64) fence.Token {
	if h.Foreign || h.Spare < 0 || uint64(h.Spare) >= counter {
		return 0
	}
	return fence.Token(counter - uint64(h.Spare))
}

// ownedBy are the nodes of a set that holder has.
func ownedBy(holder store.Holder, set quorum.Set, nodes []store.NodeOutcome) (owned []int) {
	for i, n := range nodes {
		if set.Has(i) && n.Outcome == store.Taken && n.Holder.Owner == holder.Owner {
			owned = append(owned, i)
		}
	}
	return owned
}

// heldFor is how long the holder keeps a majority if nobody renews: until so
// many of its nodes have expired that fewer than need are left. Negative if
// never.
func heldFor(owned []int, nodes []store.NodeOutcome, need int) time.Duration {
	left := make([]time.Duration, len(owned))
	for i, n := range owned {
		left[i] = nodes[n].ExpiresIn
	}
	// Longest first, those that never expire (negative) before all.
	slices.SortFunc(left, func(a, b time.Duration) int { return cmp.Compare(uint64(b), uint64(a)) })
	return left[need-1]
}
