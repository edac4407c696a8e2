package redisstore

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
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

// listen subscribes to pushes. For the only node of a store it also runs the single-node
// membership check. The argument hello is the reply to HELLO 3: without version 3 of the
// protocol a connection that receives pushes cannot carry requests. If the server cannot
// push, waiters poll.
func (n *node) listen(w *wire, hello resp.Value) error {
	var asked [][]byte
	if hello.Kind != '-' {
		if n.isSingle() {
			asked = append(asked, resp.Command("SUBSCRIBE", membership.Channel))
		}
		asked = append(asked, resp.Command("SUBSCRIBE", n.s.channel))
	}
	channels := len(asked)
	if n.isSingle() {
		asked = append(asked, resp.Command("GET", script.MarkKey))
	}
	all, err := w.Exchange(asked...)
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
	return n.subscribed(w, said)
}

// subscribed handles the reply to the subscription.
func (n *node) subscribed(w *wire, said resp.Value) error {
	if w.canPush = said.Kind == '>'; w.canPush {
		return nil
	}
	if said.Code() == resp.Loading {
		return resp.ErrorOf(said)
	}
	n.mu.Lock()
	told := n.noPush
	n.noPush = true
	n.mu.Unlock()
	if !told {
		n.log.Warn("cannot subscribe to notifications; waiters will poll", "err", said.String())
	}
	return nil
}

// handlePush handles a push.
func (w *wire) handlePush(v resp.Value) {
	if !v.IsPush() {
		return
	}
	n := w.n
	switch {
	case string(v.List[1].Text) == membership.Channel:
		w.abandon(errMembershipChanged)
		return
	case w.comparison.due:
		w.comparison.withhold(n, call{}, script.Reply{Value: v, At: w.at})
		return
	case string(v.List[0].Text) == "sunsubscribe":
		w.replace(errChannelMoved)
		return
	}
	told, ok := script.ParsePush(string(v.List[2].Text))
	switch {
	case !ok:
		n.log.Debug("ignoring an invalid push", "message", v.List[2].String())
	case told.Granted && n.isCounting(): // an operator has declared the server empty; it grants again
		n.s.driver.OnPushLost(n.index)
	case told.Granted:
		if !pushesStamped {
			told.Stamp = w.at
		}
		name := n.s.driver.OnGranted(n.index, told.Owner, driver.Reply{Token: told.Token, Counted: told.Counted, Reserved: told.Reserved, Slot: told.Slot, Stamp: told.Stamp, Clock: told.Clock, At: w.at})
		if name != "" && n.s.guarded.Load() {
			n.saw([]byte(name), told.Token, w.at)
		}
	default:
		n.s.driver.OnFree(n.index, told.Owner)
	}
}

// recheckWaiters makes all waiters ask the node again after its connection broke.
func (w *wire) recheckWaiters() {
	if w.canPush && missedAsked { // even if nobody waits at a place yet
		w.n.s.driver.OnPushLost(w.n.index)
	}
}

// testPushLocked tests a silent connection, with nothing in flight, while there are
// waiters. It returns when to test again; zero means not before something is sent.
func (w *wire) testPushLocked(now time.Time) (again time.Time) {
	n := w.n
	if !w.canPush || n.s.waiting.Load() == 0 {
		return time.Time{}
	}
	if at := w.used.Add(n.s.pushTestAfter); now.Before(at) {
		return at
	}
	if n.waiting.n == 0 {
		n.s.inFlight.Add(1)
		n.waiting.push(call{command: pingCommand, timeout: n.s.o.ConnectTimeout, look: make(poll, 1)})
		n.wake()
	}
	return time.Time{} // a late answer has look called
}
