package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/cluster"
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
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	names, cut := s.names(ctx, prefix)
	if names == nil {
		return nil, cut
	}
	var held []store.State
	for batch := range slices.Chunk(slices.Sorted(maps.Keys(names.found)), listBatch) {
		states, err := s.inspectAll(ctx, batch)
		if few := (*store.QuorumError)(nil); errors.As(err, &few) && len(s.nodes) > 1 {
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
	nodes, said := s.outcomes(), make([]map[int]script.Listed, len(s.nodes))
	err = s.ask(ctx, script.ListCommand(names, s.guarded.Load()), s.nodeTimeout(s.o.MaxTTL), func(a looked) {
		var outcome store.NodeOutcome
		said[a.node], outcome = a.Listed(len(names))
		outcome = s.nodes[a.node].shows(outcome)
		outcome.Node = nodes[a.node].Node
		nodes[a.node] = outcome
	})
	if err != nil {
		return nil, err
	}
	cfg := s.quorumConfig()
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
	nodes := s.outcomes()
	whole, cut := 0, error(nil)
	for i, n := range s.nodes {
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
func (s *engine) heldAt(ctx context.Context, n *node) (name string, holder store.Holder, err error) {
	names := newCatalog(nameOfCounter)
	if _, err := scan(ctx, n, script.KeyBegin+"*"+script.CounterEnd, names); err != nil {
		return "", holder, err
	}
	for batch := range slices.Chunk(slices.Sorted(maps.Keys(names.found)), listBatch) {
		r := n.askOne(ctx, script.ListCommand(batch, false))
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
func scan(ctx context.Context, n *node, pattern string, all *catalog) (store.Outcome, error) {
	been, repeats := map[uint64]bool{}, 0
	for cursor := uint64(0); ; {
		a := n.askOne(ctx, script.NewCommand("SCAN", strconv.FormatUint(cursor, 10), "MATCH", pattern, "COUNT", "1000"))
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

// List implements driver.Engine. It lists the locks of all members. If some of them do not
// answer, it returns the locks of the others and a *store.QuorumError.
func (c *clusterEngine) List(ctx context.Context, prefix string) ([]store.State, error) {
	if err := c.s.usable(ctx); err != nil {
		return nil, err
	}
	names := newCatalog(func(key string) (string, bool) {
		name, ok := cluster.NameOf(strings.TrimSuffix(strings.TrimPrefix(key, script.KeyBegin), script.CounterEnd))
		return name, ok && strings.HasPrefix(name, prefix) && store.CheckName(name) == nil
	})
	var cut error
	masters := c.r.masters()
	few := &store.QuorumError{Op: "list", Store: "redis-cluster", Need: len(masters)} // each lock is on one of them
	for _, n := range masters {
		outcome, err := scan(ctx, n, script.KeyBegin+script.GlobEscape.Replace(clusterPrefix(prefix))+"*"+script.CounterEnd, names)
		if errors.Is(err, store.ErrIncomplete) {
			outcome, cut = store.Granted, fmt.Errorf("%s: %w", n.addr.Host, err)
		}
		said := store.NodeOutcome{Node: n.addr.Host, Outcome: outcome}
		if outcome != store.Granted {
			said.Err = ofMember(err)
		}
		few.Nodes = append(few.Nodes, said)
	}
	held, failed := c.inspectAll(ctx, slices.Sorted(maps.Keys(names.found)))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for name, said := range failed {
		at := slices.Index(masters, c.r.memberFor(cluster.SlotOf(cluster.KeyOf(name))))
		if at < 0 { // the slot has moved, and the member there has joined meanwhile
			return held, &store.QuorumError{Op: "list", Store: "redis-cluster", Need: 1, Nodes: []store.NodeOutcome{said}}
		}
		if few.Nodes[at].Outcome == store.Granted {
			few.Nodes[at].Outcome, few.Nodes[at].Err = said.Outcome, ofMember(said.Err)
		}
	}
	if few.Count(store.Granted) < few.Need {
		return held, few
	}
	return held, cut
}

// ofMember returns an error of a member without its address, which a text about all of them has.
func ofMember(err error) error {
	if e, ok := errors.AsType[*memberError](err); ok {
		return e.err
	}
	return err
}

// inspectAll inspects many locks, and returns those that a client of this package holds.
// A script can access one slot only, so each lock takes a command of its own; several are
// in flight at once. It also returns why locks could not be inspected.
func (c *clusterEngine) inspectAll(ctx context.Context, names []string) (held []store.State, failed map[string]store.NodeOutcome) {
	states, errs := make([]store.State, len(names)), make([]error, len(names))
	next := make(chan int)
	var all sync.WaitGroup
	for range min(listAtOnce, len(names)) {
		all.Go(func() {
			for i := range next {
				states[i], errs[i] = c.Inspect(ctx, names[i])
			}
		})
	}
	for i := range names {
		next <- i
	}
	close(next)
	all.Wait()
	failed = map[string]store.NodeOutcome{}
	for i, state := range states {
		switch q, ok := errors.AsType[*store.QuorumError](errs[i]); {
		case ok && q.Count(store.WrongType) > 0: // the key has something that is not a lock
		case ok:
			failed[names[i]] = q.Nodes[0]
		case errs[i] != nil:
			failed[names[i]] = store.NodeOutcome{Outcome: store.Pending, Err: errs[i]}
		case state.Held && !state.Holder.Foreign:
			state.Queue, state.Broken = nil, nil
			held = append(held, state)
		}
	}
	return held, failed
}
