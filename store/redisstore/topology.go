package redisstore

import (
	"context"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// topology is how the servers of a store belong together. It answers every question of a
// store and its nodes whose answer differs between topologies, which are independent,
// watched and clustered.
type topology interface {
	// ready prepares for a lock that requires store.CrashSafe, or returns why the servers
	// cannot keep one.
	ready(s *fleet, r store.Lease) error
	// keys returns the function that finds the key of a lock and its slot; nil if there
	// are no slots. Servers with slots have no marks.
	keys() func(name string) (key string, slot int)
	// servers returns all nodes that calls may be in flight on.
	servers(s *fleet) []*node
	// readsInline reports whether a caller may read the replies itself.
	readsInline(s *fleet) bool

	// name is the name of a node in messages.
	name(n *node) string
	// start starts the goroutines that a new node needs besides its sender.
	start(n *node)
	// reach connects to the right server and prepares the connection.
	reach(n *node) (*conn.Pipe[call], error)
	// fit returns why a server cannot be the node, judged by what it reports about
	// itself; nil if it can.
	fit(n *node, id membership.Identity) error
	// settled checks a new connection to a server that is fit.
	settled(s *session) error
	// listen subscribes to pushes; hello is the reply to HELLO.
	listen(s *session, hello resp.Value) error
	// demoted reports whether an error reply means that the connection must be replaced.
	demoted(v resp.Value) bool
	// redirect sends a call that has failed elsewhere and returns false, or it returns the
	// reply to deliver.
	redirect(n *node, c call, said script.Reply) (script.Reply, bool)
}

// independent is the topology of one server, or of several independent ones.
type independent struct{}

func (independent) ready(s *fleet, _ store.Lease) error { return s.guard() }

func (independent) keys() func(string) (string, int) { return nil }

func (independent) servers(s *fleet) []*node { return s.nodes }

func (independent) readsInline(s *fleet) bool { return len(s.nodes) == 1 }

func (independent) name(n *node) string { return n.addr.Host }

func (independent) start(*node) {}

func (independent) reach(n *node) (*conn.Pipe[call], error) {
	return connect(n.Context(), n, n.addr.Host)
}

// connect makes a connection of n to the server at host.
func connect(ctx context.Context, n *node, host string) (*conn.Pipe[call], error) {
	a, s := n.addr, newSession(n)
	a.Host = host
	if err := n.Open(ctx, &s.Pipe, a, s); err != nil {
		return nil, err
	}
	return &s.Pipe, nil
}

func (independent) fit(n *node, id membership.Identity) error {
	err := id.Unfit()
	if err != nil && n.isSingle() {
		n.log.Warn("the server can lose locks", "err", err)
		return nil
	}
	return err
}

func (independent) settled(*session) error { return nil }

func (independent) listen(s *session, hello resp.Value) error { return s.listen(hello) }

func (independent) demoted(resp.Value) bool { return false }

func (independent) redirect(_ *node, _ call, said script.Reply) (script.Reply, bool) {
	return said, true
}
