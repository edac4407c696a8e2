package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/node"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/view"
)

// Bounds of a listing. SCAN ends only when the server says so, and a broken server may
// never do that.
const (
	listFor     = time.Minute
	listMemory  = 256 << 20 // bytes, for names and cursors
	listEntry   = 64        // bytes of overhead for each of them
	listRepeats = 1000      // cursors seen before: a table that shrinks repeats a few
	listBatch   = 256       // locks per step
	listAtOnce  = 64        // locks of a cluster that are inspected concurrently
)

// List implements driver.Engine. It finds locks by their token counters and leaves out
// locks of other clients, even where a counter of an earlier grant exists.
func (s *engine) List(ctx context.Context, prefix string) ([]store.State, error) {
	held, err := s.held(ctx, prefix)
	for i := range held {
		held[i].Undecided = slices.DeleteFunc(held[i].Undecided, func(h store.Holding) bool { return h.Holder.Foreign })
	}
	return slices.DeleteFunc(held, func(state store.State) bool { return state.Holder.Foreign || state.Free() }), err
}

// held is List with the locks of other clients that have a token counter.
func (s *engine) held(ctx context.Context, prefix string) ([]store.State, error) {
	names, cut := s.names(ctx, prefix)
	if names == nil {
		return nil, cut
	}
	var held []store.State
	for batch := range slices.Chunk(slices.Sorted(maps.Keys(names.found)), listBatch) {
		states, err := s.inspectAll(ctx, batch)
		if few := (*store.QuorumError)(nil); errors.As(err, &few) && len(s.Nodes) > 1 {
			cut = err
		} else if err != nil {
			return nil, err
		}
		held = append(held, states...)
	}
	return held, cut
}

// inspectAll inspects many locks in one step, and returns those that are held, or may be. With a
// *store.QuorumError it returns what those servers know that answered.
func (s *engine) inspectAll(ctx context.Context, names []string) (held []store.State, err error) {
	nodes, said := s.Outcomes(), make([]map[int]script.Listed, len(s.Nodes))
	err = s.Ask(ctx, script.ListCommand(names, s.Guarded.Load()), s.NodeTimeout(s.Config.MaxTTL), func(a node.Answer) {
		var outcome store.NodeOutcome
		said[a.Node], outcome = a.Listed(len(names))
		outcome = s.Nodes[a.Node].Shows(outcome)
		outcome.Node = nodes[a.Node].Node
		nodes[a.Node] = outcome
	})
	if err != nil {
		return nil, err
	}
	cfg := s.QuorumConfig()
	var few error
	if !view.Answered(cfg, nodes) {
		few = &store.QuorumError{Op: "list", Store: "redis", Need: quorum.Majority(len(nodes)), Nodes: nodes}
		if len(nodes) == 1 {
			return nil, few
		}
	}
	for i, name := range names {
		if !slices.ContainsFunc(said, func(held map[int]script.Listed) bool { _, ok := held[i]; return ok }) {
			continue
		}
		seen := view.New(cfg)
		copy(seen.Nodes, nodes)
		for n := range said {
			if l, ok := said[n][i]; ok {
				l.Outcome.Node = nodes[n].Node
				seen.Nodes[n], seen.Tokens[n], seen.Records[n] = l.Outcome, l.Token, l.Record
			}
		}
		if state := seen.State(name); !state.Free() {
			held = append(held, state)
		}
	}
	return held, few
}

// names finds the locks with the prefix that have a token counter on any node. If scans
// were cut short so that fewer than a majority of the nodes reported all their keys, it
// returns what it found and an error that matches store.ErrIncomplete, or if fewer answered at all
// store.ErrQuorum.
func (s *engine) names(ctx context.Context, prefix string) (*catalog, error) {
	pattern := script.KeyBegin + script.GlobEscape.Replace(prefix) + "*" + script.CounterEnd
	names := newCatalog(nameOfCounter)
	nodes := s.Outcomes()
	whole, cut := 0, error(nil)
	for i, n := range s.Nodes {
		nodes[i].Outcome, nodes[i].Err = scan(ctx, n, pattern, names)
		switch {
		case errors.Is(nodes[i].Err, store.ErrIncomplete):
			nodes[i].Outcome, cut = store.Granted, fmt.Errorf("%s: %w", nodes[i].Node, nodes[i].Err)
		case nodes[i].Outcome == store.Granted:
			whole++
		}
	}
	e := &store.QuorumError{Op: "list", Store: "redis", Need: quorum.Majority(len(nodes)), Nodes: nodes}
	switch {
	case ctx.Err() != nil, e.Count(store.Granted) == 0:
		return nil, e
	case e.Count(store.Granted) < e.Need:
		return names, e
	case whole < e.Need:
		return names, cut
	}
	return names, nil
}

// nameOfCounter returns the name of the lock whose token counter is at key.
func nameOfCounter(key string) (string, bool) {
	name := strings.TrimSuffix(strings.TrimPrefix(key, script.KeyBegin), script.CounterEnd)
	return name, store.CheckName(name) == nil
}

// heldAt returns a lock that is held on one server, whatever the others say, and its holder.
// The name is empty if there is none.
func (s *engine) heldAt(ctx context.Context, n *node.Node) (name string, holder store.Holder, err error) {
	names := newCatalog(nameOfCounter)
	if _, err := scan(ctx, n, script.KeyBegin+"*"+script.CounterEnd, names); err != nil {
		return "", holder, err
	}
	for batch := range slices.Chunk(slices.Sorted(maps.Keys(names.found)), listBatch) {
		r := n.Ask(ctx, script.ListCommand(batch, false))
		if r.Outcome != store.Granted {
			return "", holder, r.Err
		}
		listed, _ := r.Listed(len(batch))
		for i, l := range listed {
			if l.Outcome.Outcome == store.Taken {
				return batch[i], l.Outcome.Holder, nil
			}
		}
	}
	return "", holder, nil
}

// catalog collects names of locks from scanned keys, within bounds.
type catalog struct {
	nameOf func(key string) (string, bool)
	found  map[string]bool
	until  time.Time
	left   int // bytes
}

func newCatalog(nameOf func(string) (string, bool)) *catalog {
	return &catalog{nameOf, map[string]bool{}, time.Now().Add(listFor), listMemory}
}

// add adds the lock of a key.
func (c *catalog) add(key string) {
	if name, ok := c.nameOf(key); ok && !c.found[name] && c.left > 0 {
		c.found[name] = true
		c.left -= len(name) + listEntry
	}
}

// full returns an error if a bound has been reached.
func (c *catalog) full() error {
	switch {
	case c.left <= 0:
		return fmt.Errorf("%w: too many keys (%d names so far)", store.ErrIncomplete, len(c.found))
	case time.Now().After(c.until):
		return fmt.Errorf("%w: the server did not come to the end of its keys within %v", store.ErrIncomplete, listFor)
	}
	return nil
}

// scan adds the node's keys that match.
func scan(ctx context.Context, n *node.Node, pattern string, all *catalog) (store.Outcome, error) {
	been, repeats := map[uint64]bool{}, 0
	for cursor := uint64(0); ; {
		a := n.Ask(ctx, script.NewCommand("SCAN", strconv.FormatUint(cursor, 10), "MATCH", pattern, "COUNT", "1000"))
		if a.Outcome != store.Granted {
			return a.Outcome, a.Err
		}
		said := a.Value.List
		if len(said) != 2 {
			return store.Refused, resp.Unexpected(a.Value)
		}
		next, ok := said[0].Number()
		if !ok {
			return store.Refused, resp.Unexpected(said[0])
		}
		for _, key := range said[1].List {
			all.add(string(key.Text))
		}
		if next == 0 {
			return store.Granted, nil
		}
		if been[next] {
			repeats++
		} else {
			been[next] = true
			all.left -= listEntry
		}
		if repeats > listRepeats {
			return store.Refused, fmt.Errorf("%w: SCAN does not end: it keeps returning the same %d cursors", store.ErrIncomplete, len(been))
		}
		if err := all.full(); err != nil {
			return store.Refused, err
		}
		cursor = next
	}
}
