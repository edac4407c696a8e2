package redisstore

import (
	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// A store with one server does not check the server's mark for each lock, which would add
// a tenth to the cost of a lock. It must still not use a server that belongs to a larger
// membership: it and the clients of that membership would not exclude each other. So it
// checks the mark when it connects, after it has subscribed to a channel on which every
// change of the membership is published. Servers that cannot push (before Redis 6) are
// checked on each connection only.

// isSingle reports whether this is the only node of its store.
func (n *node) isSingle() bool { return len(n.s.nodes) == 1 }

// checkMembership checks by the mark which membership the server belongs to. A client that may
// not read the mark, and a server without one, pass the check.
func (n *node) checkMembership(text resp.Value) {
	var foreign *driver.Refusal
	if text.Kind != '$' || text.Null {
		text.Text = []byte(nodemark.New().String())
	}
	mark, err := nodemark.Parse(string(text.Text))
	if err != nil {
		n.log.Warn("node cannot be used", "err", err)
		foreign = &driver.Refusal{Outcome: store.Refused, Err: err}
	} else if list, other := n.s.membership.Others(mark); other {
		said := script.OtherMembership(resp.Value{Kind: '$', Text: []byte(list)})
		n.log.Warn("the server belongs to a multi-server configuration; this client is refused", "err", said.Err)
		foreign = &driver.Refusal{Outcome: said.Outcome, Err: said.Err}
	}
	n.mu.Lock()
	n.foreign = foreign
	n.mu.Unlock()
}

// failForeign answers calls that were enqueued before it was known that this server must not
// be used for them.
func (n *node) failForeign() {
	n.mu.Lock()
	foreign := n.foreign
	var away []call
	for range n.waiting.n {
		if c, _ := n.waiting.pop(); foreign != nil && c.command.Script.Keeps() {
			away = append(away, c)
		} else {
			n.waiting.push(c)
		}
	}
	n.mu.Unlock()
	for _, c := range away {
		n.finish(c, script.Reply{Outcome: foreign.Outcome, Err: foreign.Err})
	}
}
