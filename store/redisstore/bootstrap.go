package redisstore

import (
	"cmp"
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
)

// Declared is a server of which it was declared that it has forgotten nothing.
type Declared struct {
	Node  string // its address
	RunID string // which is new at every start
}

// Bootstrap declares, for the servers that answer at this moment and for no
// later run of them, that nobody holds a lock there which they do not know of:
// that they are new, or that all who may have had locks are known to be gone.
// Their quarantine then ends at once. If that is not so, two holders at once are
// possible.
//
// It changes nothing, and fails, unless every node of urls answers and says who
// it is; or while locks are held there, unless force. It blocks for
// Options.ConnectTimeout at most, and calling it twice is harmless.
func Bootstrap(ctx context.Context, urls []string, o *Options, force bool) ([]Declared, error) {
	if err := mustBeIndependent("bootstrap", urls); err != nil {
		return nil, err
	}
	opts := Options{}
	if o != nil {
		opts = *o
	}
	opts.declares = true
	s, err := Open(ctx, urls, &opts)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	servers, err := s.identities(ctx)
	if err != nil {
		return nil, err
	}
	held, err := s.held(ctx, "")
	if err != nil {
		return nil, err
	}
	if len(held) > 0 && !force {
		return nil, fmt.Errorf("%w: %d are, such as %q by %s: the servers are in use, and not to be declared empty", store.ErrBusy, len(held), held[0].Name, held[0].Holder)
	}
	nodes := make([]store.NodeOutcome, len(servers))
	for i, server := range servers {
		r := s.nodes[i].askOne(ctx, newCommand("SET", markKey, s.nodes[i].declaration(force).String()))
		s.nodes[i].askOne(ctx, newCommand("PUBLISH", listChannel, "")) // as scripts/tell.lua does
		nodes[i] = store.NodeOutcome{Node: server.Node, Outcome: r.outcome, Err: r.err}
	}
	if e := (&store.QuorumError{Op: "bootstrap", Need: len(nodes), Nodes: nodes}); e.Count(store.Granted) < e.Need {
		return nil, e
	}
	return servers, nil
}

// declaration is the mark of a node that was declared empty. If nobody holds a lock
// there, all leases are still to be written, and are durable if the server is.
func (n *node) declaration(force bool) nodemark.Mark {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := nodemark.New()
	m.Open, m.Why = true, nodemark.Declared
	m.Print, m.List = n.s.lists.print, n.s.lists.text
	m.Run, m.Replication = n.server.runID, cmp.Or(n.server.replication, nodemark.Unknown)
	if n.durable() == "always" && !force {
		m.Durable, m.ClientDurable = 1, 1
	}
	return m
}

// identities are who answers at each node's address.
func (s *Store) identities(ctx context.Context) ([]Declared, error) {
	servers := make([]Declared, len(s.nodes))
	nodes := make([]store.NodeOutcome, len(s.nodes))
	for i, n := range s.nodes {
		r := s.nodes[i].askOne(ctx, pingCommand) // there is a connection now, or none to be had
		nodes[i] = store.NodeOutcome{Node: n.Addr(), Outcome: r.outcome, Err: r.err}
		n.mu.Lock()
		servers[i] = Declared{n.Addr(), n.server.runID}
		n.mu.Unlock()
		if r.outcome == store.Granted && servers[i].RunID == "" {
			nodes[i].Outcome, nodes[i].Err = store.Refused, errUnidentified
		}
	}
	if e := (&store.QuorumError{Op: "bootstrap", Need: len(nodes), Nodes: nodes}); e.Count(store.Granted) < e.Need {
		return nil, e
	}
	return servers, nil
}

// askOne sends a command to the node and waits for the answer.
func (n *node) askOne(ctx context.Context, c *command) reply {
	p := make(poll, 1)
	if err := n.put(call{command: c, timeout: n.s.o.ConnectTimeout, look: p}, false); err != nil {
		said := driver.Unsent(err)
		return reply{outcome: said.Outcome, err: said.Err}
	}
	select {
	case a := <-p:
		return a.reply
	case <-ctx.Done():
		return reply{outcome: store.Pending, err: ctx.Err()}
	}
}
