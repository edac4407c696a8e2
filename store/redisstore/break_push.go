package redisstore

import (
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// A breaker does not know where the holder is. It publishes the owner on a channel that
// every connection subscribes to, and the client that has the lease renews it.

// isBreak reports whether v is a push about a broken lease.
func isBreak(v resp.Value) bool {
	return v.IsPush() && string(v.List[1].Text) == script.BreakChannel
}

// staySubscribed connects again although there is nothing to send, if somebody wants to be notified
// of broken leases: without a connection, pushes are missed.
func (n *node) staySubscribed() {
	if !n.s.broken.Empty() {
		_ = n.put(call{command: pingCommand, timeout: n.s.o.ConnectTimeout, to: nobody{}}, false) // if it fails, the next renewal connects
	}
}

// handleBreakPush handles a push about a broken lease. Anybody may publish to the channel.
func (s *core) handleBreakPush(v resp.Value) {
	if owner := string(v.List[2].Text); store.CheckOwner(owner) == nil {
		s.broken.Tell(owner)
	}
}
