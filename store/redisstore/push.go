package redisstore

import (
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
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

var errMembershipChanged = errors.New("the list of nodes that the server belongs to has changed")

// listen subscribes to pushes, and to what is published of broken leases. For the only node
// of a store it also runs the single-node membership check. The argument hello is the reply
// to HELLO 3: without version 3 of the protocol a connection that receives pushes cannot
// carry requests. If the server cannot push, waiters poll.
func (s *session) listen(hello resp.Value) error {
	n := s.n
	var asked [][]byte
	if hello.Kind != '-' {
		if n.isSingle() {
			asked = append(asked, resp.Command("SUBSCRIBE", membership.Channel))
		}
		asked = append(asked, resp.Command("SUBSCRIBE", script.BreakChannel), resp.Command("SUBSCRIBE", n.s.channel))
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
	return s.subscribed(said)
}

// subscribed handles the reply to the subscription.
func (s *session) subscribed(said resp.Value) error {
	n := s.n
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
		n.log.Warn("cannot subscribe to notifications; waiters will poll", "err", said.String())
	}
	return nil
}

// Push implements conn.Handler.
func (s *session) Push(v resp.Value) error {
	switch {
	case v.IsInvalidation():
		s.invalidated(v)
	case isBreak(v):
		s.n.s.handleBreakPush(v)
	case s.canPush:
		s.handlePush(v)
	default:
		return conn.ErrUnasked
	}
	return nil
}

// handlePush handles a push about a channel.
func (s *session) handlePush(v resp.Value) {
	if !v.IsPush() {
		return
	}
	n := s.n
	switch {
	case string(v.List[1].Text) == membership.Channel:
		s.Abandon(errMembershipChanged)
		return
	case s.comparison.due:
		s.comparison.withhold(&n.Mu, call{}, script.Reply{Value: v, At: s.At})
		return
	case string(v.List[0].Text) == "sunsubscribe":
		s.Replace(errChannelMoved)
		n.staySubscribed()
		return
	}
	push, ok := script.ParsePush(string(v.List[2].Text))
	switch {
	case !ok:
		n.log.Debug("ignoring an invalid push", "message", v.List[2].String())
	case push.Granted && s.relayed: // see unsharded
		n.s.driver.OnHint(n.index, push.Owner)
	case push.Granted && n.isCounting(): // an operator has declared the server empty; it grants again
		n.s.driver.OnPushLost(n.index)
	case push.Granted:
		if !pushesStamped {
			push.Stamp = s.At
		}
		name := n.s.driver.OnGranted(n.index, push.Owner, driver.Reply{Token: push.Token, Slot: push.Slot, Slots: push.Slots, Stamp: push.Stamp, Clock: push.Clock, At: s.At})
		if name != "" && n.s.guarded.Load() {
			n.saw(name, push.Token, s.At)
		}
	default:
		n.s.driver.OnFree(n.index, push.Owner)
	}
}

// recheckWaiters makes all waiters ask the node again after its connection broke.
func (s *session) recheckWaiters() {
	if s.canPush && missedAsked { // even if nobody waits at a place yet
		s.n.s.driver.OnPushLost(s.n.index)
	}
}

// testPushLocked tests a silent connection, with nothing in flight, while there are
// waiters. It returns when to test again; zero means not before something is sent.
func (s *session) testPushLocked(now time.Time) (again time.Time) {
	n := s.n
	if !s.canPush || n.s.waiting.Load() == 0 {
		return time.Time{}
	}
	if at := s.UsedLocked().Add(n.s.pushTestAfter); now.Before(at) {
		return at
	}
	if n.Waiting.Len() == 0 {
		n.s.enqueueLocked(&n.Peer, call{command: pingCommand, timeout: n.s.o.ConnectTimeout, look: make(poll, 1)})
	}
	return time.Time{} // a late answer ends the connection
}
