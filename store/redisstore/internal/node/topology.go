package node

import (
	"context"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Topology is where the server of a node is, and which server can be the node. It answers each question
// of a node whose answer differs between topologies: Independent, and those of package route.
type Topology interface {
	// Name is the name of a node in messages.
	Name(n *Node) string
	// Reach connects to the right server and prepares the connection.
	Reach(n *Node) (*conn.Pipe[Call], error)
	// Fit returns why the server of a new connection cannot be the node, judged by what it reports
	// about itself; nil if it can.
	Fit(s *Session, id membership.Identity) error
	// Listen subscribes to pushes; hello is the reply to HELLO.
	Listen(s *Session, hello resp.Value) error
	// Demoted reports whether an error reply means that the connection must be replaced.
	Demoted(v resp.Value) bool
	// Redirect sends a call that has failed elsewhere and returns false, or it returns the
	// reply to deliver.
	Redirect(n *Node, c Call, said script.Reply) (script.Reply, bool)
}

// Others are the nodes of a store, which decide together about membership and quarantines. A node
// tells them its news without holding its mutex.
type Others interface {
	// Heard is called when the mark of a node was checked.
	Heard(n *Node, is News)
	// Looked is called when a new connection has shown the mark.
	Looked()
	// Connected is called when a connection can be used.
	Connected()
	// Missed returns e, or an error that says more if the node belongs to a membership that ours
	// has replaced.
	Missed(e *script.MembershipError) error
}

// News is what a check of a node's mark has shown.
type News struct {
	Replaced    bool       // for the first time over this connection: it names another membership
	Quarantined bool       // for the first time over this connection: the node is in quarantine
	Quarantine  resp.Value // the longest quarantine that any client has asked the node for, if it has the mark
}

// Independent is the topology of one server, or of several independent ones, each at the address
// of its node.
type Independent struct{}

func (Independent) Name(n *Node) string { return n.Address.Host }

func (Independent) Reach(n *Node) (*conn.Pipe[Call], error) {
	return Connect(n.Context(), n, n.Address.Host)
}

// Connect makes a connection of n to the server at host.
func Connect(ctx context.Context, n *Node, host string) (*conn.Pipe[Call], error) {
	a, s := n.Address, newSession(n)
	a.Host = host
	if err := n.Open(ctx, &s.Pipe, a, s); err != nil {
		return nil, err
	}
	return &s.Pipe, nil
}

func (Independent) Fit(s *Session, id membership.Identity) error {
	n, err := s.Node, id.Unfit()
	if err != nil && n.isSingle() {
		n.Log.Warn("the server can lose locks", "err", err)
		return nil
	}
	return err
}

func (Independent) Listen(s *Session, hello resp.Value) error { return s.listen(hello) }

func (Independent) Demoted(resp.Value) bool { return false }

func (Independent) Redirect(_ *Node, _ Call, said script.Reply) (script.Reply, bool) {
	return said, true
}
