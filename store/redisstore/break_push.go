package redisstore

import (
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// A breaker does not know where the holder is. It publishes the owner on a channel that
// every connection subscribes to, and the client that has the lease renews it. A random
// owner tells the others nothing.

// NotifyBroken implements store.BreakNotifier. Clients that may not use the channel, or
// whose server does not know version 3 of the protocol, are not told.
func (s *Store) NotifyBroken(f func(owner string)) (stop func()) { return s.broken.Add(f) }

// publishBreak tells the clients that a lease of owner was broken. A majority of the nodes
// refuses to renew it by then. The scripts could publish it in the same step, but then the
// first node would have the lease renewed on the others.
func (s *fleet) publishBreak(owner string) {
	c := script.NewCommand("PUBLISH", script.BreakChannel, owner)
	for _, n := range s.nodes {
		_ = n.put(call{command: c, timeout: s.o.ConnectTimeout, to: nobody{}}, false) // it is only a hint
	}
}

// isBreak reports whether v is a push about a broken lease.
func isBreak(v resp.Value) bool {
	return v.IsPush() && string(v.List[1].Text) == script.BreakChannel
}

// heardBreak handles such a push. Anybody may publish to the channel.
func (s *core) heardBreak(v resp.Value) {
	if owner := string(v.List[2].Text); store.CheckOwner(owner) == nil {
		s.broken.Tell(owner)
	}
}
