package redisstore

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Declared identifies a server that Bootstrap declared empty.
type Declared struct {
	Node  string // the server's address
	RunID string // the server's run ID, which changes at every start
}

// Bootstrap declares that the servers have forgotten no lease: they are new, or no client
// that may have held locks on them is running any more. It ends their quarantine at once.
// The declaration covers only the servers that answer now, and only their current run. If
// it is wrong, a lock can have two holders.
//
// Bootstrap changes nothing and fails unless every node of urls answers and reports its
// identity. It also fails with store.ErrBusy if locks are held there, unless force is
// set. It blocks for about Options.ConnectTimeout at most. It is safe for concurrent use,
// and calling it twice is harmless.
func Bootstrap(ctx context.Context, urls []string, o *Options, force bool) ([]Declared, error) {
	if err := config.MustBeIndependent("bootstrap", urls); err != nil {
		return nil, err
	}
	s, err := newStore(urls, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	s.declares = true
	if err := s.waitForQuorum(ctx); err != nil {
		return nil, err
	}
	servers, err := s.identities(ctx)
	if err != nil {
		return nil, err
	}
	held, err := s.held(ctx, "")
	if err != nil {
		return nil, err
	}
	if len(held) > 0 && !force {
		return nil, fmt.Errorf("%w: %d locks are held, such as %q by %s: servers in use must not be declared empty", store.ErrBusy, len(held), held[0].Name, held[0].Holder)
	}
	nodes := make([]store.NodeOutcome, len(servers))
	for i, server := range servers {
		r := s.nodes[i].askOne(ctx, script.NewCommand("SET", script.MarkKey, s.nodes[i].declaration(force).String()))
		s.nodes[i].askOne(ctx, script.NewCommand("PUBLISH", membership.Channel, "")) // as tell.lua does
		nodes[i] = store.NodeOutcome{Node: server.Node, Outcome: r.Outcome, Err: r.Err}
	}
	if e := (&store.QuorumError{Op: "bootstrap", Need: len(nodes), Nodes: nodes}); e.Count(store.Granted) < e.Need {
		return nil, e
	}
	return servers, nil
}

// declaration returns the mark of a node that is declared empty.
func (n *node) declaration(force bool) nodemark.Mark {
	n.mu.Lock()
	defer n.mu.Unlock()
	return membership.Declared(n.s.membership, n.server, n.durable() == "always" && !force)
}

// identities returns the identity of the server at each node's address.
func (s *Store) identities(ctx context.Context) ([]Declared, error) {
	servers := make([]Declared, len(s.nodes))
	nodes := make([]store.NodeOutcome, len(s.nodes))
	for i, n := range s.nodes {
		r := s.nodes[i].askOne(ctx, pingCommand) // connects if necessary
		nodes[i] = store.NodeOutcome{Node: n.Addr(), Outcome: r.Outcome, Err: r.Err}
		n.mu.Lock()
		servers[i] = Declared{n.Addr(), n.server.RunID}
		n.mu.Unlock()
		if r.Outcome == store.Granted && servers[i].RunID == "" {
			nodes[i].Outcome, nodes[i].Err = store.Refused, membership.ErrUnidentified
		}
	}
	if e := (&store.QuorumError{Op: "bootstrap", Need: len(nodes), Nodes: nodes}); e.Count(store.Granted) < e.Need {
		return nil, e
	}
	return servers, nil
}

// askOne sends a command to the node and waits for the answer.
func (n *node) askOne(ctx context.Context, c *script.Command) script.Reply {
	p := make(poll, 1)
	if err := n.put(call{command: c, timeout: n.s.o.ConnectTimeout, look: p}, false); err != nil {
		said := driver.PutOutcome(err)
		return script.Reply{Outcome: said.Outcome, Err: said.Err}
	}
	select {
	case a := <-p:
		return a.Reply
	case <-ctx.Done():
		return script.Reply{Outcome: store.Pending, Err: ctx.Err()}
	}
}
