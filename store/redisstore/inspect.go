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
func (s *engine) waitForQuorum(ctx context.Context) error {
	nodes := make([]store.NodeOutcome, len(s.nodes))
	for i, n := range s.nodes {
		nodes[i].Node = n.Addr()
	}
	// Once a majority is up, the other nodes get a little more time only: a node that is
	// down must not delay each start of a program by a whole connect timeout.
	until, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var up quorum.Set
	cfg, start := quorum.Config{Nodes: len(nodes), Sets: s.membership.Sets}, time.Now()
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

// views is what each node showed of a lock: its first holder, the token of that lease, and the
// record of a lock that several can hold.
type views struct {
	nodes   []store.NodeOutcome
	tokens  []fence.Token
	records []*script.Record
}

// inspect does what Inspect does, and also returns what each node showed.
func (s *engine) inspect(ctx context.Context, name string) (store.State, views, error) {
	state := store.State{Name: name}
	if err := s.usable(ctx); err != nil {
		return state, views{}, err
	}
	nodes := make([]store.NodeOutcome, len(s.voters))
	tokens := make([]fence.Token, len(s.voters))
	queues := make([][]store.Place, len(s.voters))
	notes := make([]*store.Broken, len(s.voters))
	records := make([]*script.Record, len(s.voters))
	for i, v := range s.voters {
		nodes[i].Node = v.Addr()
	}
	err := s.ask(ctx, s.inspectCommand(name), s.nodeTimeout(s.o.MaxTTL), func(a looked) {
		said, token, queue := a.Look()
		if a.node < len(s.nodes) {
			said = s.nodes[a.node].shows(said)
		}
		said.Node = nodes[a.node].Node
		nodes[a.node], tokens[a.node], queues[a.node], notes[a.node] = said, token, queue, a.Note()
		records[a.node] = a.Record()
	})
	if err != nil {
		return state, views{}, err
	}
	cfg := quorum.Config{Nodes: len(nodes), Sets: s.membership.Sets}
	var few error
	if !enoughAnswered(cfg, nodes) {
		few = &store.QuorumError{Op: "inspect", Name: name, Need: quorum.Majority(len(nodes)), Nodes: nodes}
		if len(nodes) == 1 {
			return state, views{}, few
		}
	}
	state = stateOf(name, cfg, nodes, tokens, queues)
	if len(nodes) == 1 {
		records[0].Show(&state)
	} else {
		showShares(&state, cfg, nodes, records, tokens, queues)
	}
	state.Broken = noted(notes)
	return state, views{nodes, tokens, records}, few
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

// silentAmong returns the nodes that are silent (see store.NodeOutcome).
func silentAmong(nodes []store.NodeOutcome) (silent quorum.Set) {
	for i, n := range nodes {
		if n.Silent() {
			silent |= quorum.SetOf(i)
		}
	}
	return silent
}

// stateOf combines what the nodes said about a lock: the outcome, the holder's token and
// the queue of waiters of each node.
func stateOf(name string, cfg quorum.Config, nodes []store.NodeOutcome, tokens []fence.Token, queues [][]store.Place) store.State {
	state := store.State{Name: name}
	if len(nodes) > 1 {
		state.Nodes = nodes
	}
	silent, expires := silentAmong(nodes), make([]time.Duration, len(nodes))
	for i, n := range nodes {
		expires[i] = n.ExpiresIn
	}
	for i, n := range nodes {
		has, holder := ownedBy(n.Holder, nodes)
		if n.Outcome != store.Taken || has.First() != i {
			continue
		}
		said := cfg.Tally(has, silent, expires)
		h := store.Holding{Holder: holder, ExpiresIn: said.ExpiresIn, Weight: 1}
		if said.Held || said.Undecided {
			h.Token = agreed(said, tokens)
			if store.IsNewOwner(holder.Owner) { // see otherTokens
				h.OtherTokens = otherTokens(h.Token, said.Nodes, tokens)
			}
			h.HeldFor = store.HeldFor(h.Token, holder, time.Now())
		}
		switch {
		case said.Held:
			state.Held, state.Holder, state.ExpiresIn, state.HeldFor = true, h.Holder, h.ExpiresIn, h.HeldFor
			state.Token, state.OtherTokens = h.Token, h.OtherTokens
			state.Undecided, state.Queue = nil, mergeQueues(queues, holder.Owner)
			return state
		case said.Undecided:
			state.Undecided = append(state.Undecided, h)
		}
	}
	slices.SortFunc(state.Undecided, byGrant)
	state.Queue = mergeQueues(queues, "")
	return state
}

// byGrant orders leases by when they were granted, as far as that is known.
func byGrant(a, b store.Holding) int {
	return cmp.Or(cmp.Compare(b.HeldFor, a.HeldFor), cmp.Compare(a.Token, b.Token), cmp.Compare(a.Holder.Owner, b.Holder.Owner))
}

// agreed returns the token of the grant: the one that a majority of the nodes has. If some
// are silent, there may be none. Then it is the smallest, since a grant raises the counters
// of the nodes that are behind its token, and leaves alone those that are ahead.
func agreed(said quorum.Tally, tokens []fence.Token) fence.Token {
	var at []fence.Token
	for i, token := range tokens {
		if said.Nodes.Has(i) {
			at = append(at, token)
		}
	}
	slices.Sort(at)
	for i := range len(at) - said.Need + 1 {
		if at[i] == at[i+said.Need-1] {
			return at[i]
		}
	}
	return at[0]
}

// otherTokens returns the tokens that those nodes have of a lease beside shown. They must have the
// same lease: an owner that is fixed can have an earlier one on a node that missed its release.
func otherTokens(shown fence.Token, nodes quorum.Set, tokens []fence.Token) (others []fence.Token) {
	for i, token := range tokens {
		if nodes.Has(i) && token != shown && !slices.Contains(others, token) {
			others = append(others, token)
		}
	}
	return others
}

// ownedBy returns the nodes on which holder has the lock, and what they say of it.
func ownedBy(holder store.Holder, nodes []store.NodeOutcome) (quorum.Set, store.Holder) {
	var owned quorum.Set
	for i, n := range nodes {
		if n.Outcome == store.Taken && n.Holder.Owner == holder.Owner {
			owned |= quorum.SetOf(i)
			holder.Broken = holder.Broken || n.Holder.Broken
		}
	}
	return owned, holder
}

// askSingle returns the askFunc of a store with one server.
func askSingle(s *engine) askFunc {
	return func(ctx context.Context, _ string, c *script.Command) (script.Reply, string) {
		n := s.nodes[0]
		return askBy(ctx, n.put, call{command: c, timeout: s.nodeTimeout(s.o.MaxTTL)}), n.Addr()
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
