package node

import (
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Pushes tell waiters that it is their turn. The server sends them on the connection that
// carries requests, which subscribes to the store's channel before its first request.
// They therefore arrive in order with the answers. A push is only a hint: whenever one
// may have been lost, all waiters ask the node again.

// pushTestAfter is how long a connection may be silent while there are waiters before it
// is tested: it may have broken unnoticed. Places that last for 30 seconds are refreshed
// more often, which tests it as well.
const pushTestAfter = 15 * time.Second

var (
	errMembershipChanged = errors.New("the list of nodes that the server belongs to has changed")
	errChannelMoved      = errors.New("the slot of the channel has moved to another server")
	errNoChannel         = errors.New("the server was given slots after the connection was made")
)

// listen subscribes to pushes, and to what is published of broken leases. For the only node
// of a store it also runs the single-node membership check. The argument hello is the reply
// to HELLO 3: without version 3 of the protocol a connection that receives pushes cannot
// carry requests. If the server cannot push, waiters poll.
func (s *Session) listen(hello resp.Value) error {
	n := s.Node
	var asked [][]byte
	if hello.Kind != '-' {
		if n.isSingle() {
			asked = append(asked, resp.Command("SUBSCRIBE", membership.Channel))
		}
		asked = append(asked, resp.Command("SUBSCRIBE", script.BreakChannel), resp.Command("SUBSCRIBE", n.Shared.Channel))
	}
	channels := len(asked)
	if n.isSingle() {
		asked = append(asked, resp.Command("GET", script.MarkKey))
	}
	all, err := s.Exchange(asked...)
	if err != nil {
		return err
	}
	if n.isSingle() {
		mark := all[channels]
		if mark.Code() == resp.Loading { // the server has not read the mark yet
			return resp.ErrorOf(mark)
		}
		n.checkMembership(mark)
	}
	said := hello
	if channels > 0 {
		said = all[channels-1]
	}
	return s.Subscribed(said)
}

// Subscribed handles the reply to the subscription.
func (s *Session) Subscribed(said resp.Value) error {
	n := s.Node
	if s.canPush = said.Kind == '>'; s.canPush {
		return nil
	}
	if said.Code() == resp.Loading {
		return resp.ErrorOf(said)
	}
	n.Mu.Lock()
	known := n.noPush
	n.noPush = true
	n.Mu.Unlock()
	if !known {
		n.Log.Warn("cannot subscribe to notifications; waiters will poll", "err", said.String())
	}
	return nil
}

// Resubscribe replaces the connection to a member that had no slots when it was made, and so no
// channel.
func (n *Node) Resubscribe() {
	if s, _ := n.Pipe().Session().(*Session); s != nil && s.NoChannel {
		s.Replace(errNoChannel)
	}
}

// Push implements conn.Handler.
func (s *Session) Push(v resp.Value) error {
	switch {
	case v.IsInvalidation():
		s.invalidated(v)
	case isBreak(v):
		s.Node.Shared.handleBreakPush(v)
	case s.canPush:
		s.handlePush(v)
	default:
		return conn.ErrUnasked
	}
	return nil
}

// handlePush handles a push about a channel.
func (s *Session) handlePush(v resp.Value) {
	if !v.IsPush() {
		return
	}
	n := s.Node
	switch {
	case string(v.List[1].Text) == membership.Channel:
		s.Abandon(errMembershipChanged)
		return
	case s.comparison.due:
		s.comparison.withhold(&n.Mu, Call{}, script.Reply{Value: v, At: s.At})
		return
	case string(v.List[0].Text) == "sunsubscribe":
		s.Replace(errChannelMoved)
		n.staySubscribed()
		return
	}
	push, ok := script.ParsePush(string(v.List[2].Text))
	switch {
	case !ok:
		n.Log.Debug("ignoring an invalid push", "message", v.List[2].String())
	case push.Granted && s.Relayed: // see Session.Relayed
		n.Shared.Driver.OnHint(n.index, push.Owner)
	case push.Granted && n.isCounting(): // an operator has declared the server empty; it grants again
		n.Shared.Driver.OnPushLost(n.index)
	case push.Granted:
		if !pushesStamped {
			push.Stamp = s.At
		}
		name := n.Shared.Driver.OnGranted(n.index, push.Owner, driver.Reply{Token: push.Token, Slot: push.Slot, Slots: push.Slots, Stamp: push.Stamp, Clock: push.Clock, At: s.At})
		if name != "" && n.Shared.Guarded.Load() {
			n.saw(name, push.Token, s.At)
		}
	default:
		n.Shared.Driver.OnFree(n.index, push.Owner)
	}
}

// recheckWaiters makes all waiters ask the node again after its connection broke.
func (s *Session) recheckWaiters() {
	if s.canPush && missedAsked { // even if nobody waits at a place yet
		s.Node.Shared.Driver.OnPushLost(s.Node.index)
	}
}

// testPushLocked tests a silent connection, with nothing in flight, while there are
// waiters. It returns when to test again; zero means not before something is sent.
func (s *Session) testPushLocked(now time.Time) (again time.Time) {
	n := s.Node
	if !s.canPush || n.Shared.Waiting.Load() == 0 {
		return time.Time{}
	}
	if at := s.UsedLocked().Add(n.Shared.PushTestAfter); now.Before(at) {
		return at
	}
	if n.Waiting.Len() == 0 {
		n.Shared.askLocked(&n.Peer, PingCommand, nil)
	}
	return time.Time{} // a late answer ends the connection
}

// A breaker does not know where the holder is. It publishes the owner on a channel that
// every connection subscribes to, and the client that has the lease renews it.

// isBreak reports whether v is a push about a broken lease.
func isBreak(v resp.Value) bool {
	return v.IsPush() && string(v.List[1].Text) == script.BreakChannel
}

// staySubscribed connects again although there is nothing to send, if somebody wants to be notified
// of broken leases: without a connection, pushes are missed.
func (n *Node) staySubscribed() {
	if !n.Shared.Broken.Empty() {
		_ = n.Enqueue(Call{Command: PingCommand, Timeout: n.Shared.Config.ConnectTimeout, To: Nobody{}}, false) // if it fails, the next renewal connects
	}
}

// handleBreakPush handles a push about a broken lease. Anybody may publish to the channel.
func (s *Shared) handleBreakPush(v resp.Value) {
	if owner := string(v.List[2].Text); store.CheckOwner(owner) == nil {
		s.Broken.Tell(owner)
	}
}
