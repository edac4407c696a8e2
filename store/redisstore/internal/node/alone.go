package node

import (
	"math"
	"time"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// A store with one server does not check the server's mark for each lock, which would add
// a tenth to the cost of a lock. It must still not use a server that belongs to a larger
// membership: it and the clients of that membership would not exclude each other. So it
// checks the mark when it connects, after it has subscribed to a channel on which every
// change of the membership is published. Servers that cannot push (before Redis 6) are
// checked on each connection only.

// checkMembership checks by the mark which membership the server belongs to. A client that may
// not read the mark, and a server without one, pass the check.
func (f *fitness) checkMembership(text resp.Value) {
	var foreign *driver.Refusal
	if text.Kind != '$' || text.Null {
		text.Text = []byte(nodemark.New().String())
	}
	mark, err := nodemark.Parse(string(text.Text))
	if err != nil {
		f.log.Warn("node cannot be used", "err", err)
		foreign = &driver.Refusal{Outcome: store.Refused, Err: err}
	} else if list, other := f.shared.Membership.Others(mark); other {
		said := script.OtherMembership(resp.Value{Kind: '$', Text: []byte(list)})
		f.log.Warn("the server belongs to a multi-server configuration; this client is refused", "err", said.Err)
		foreign = &driver.Refusal{Outcome: said.Outcome, Err: said.Err}
	}
	f.peer.Mu.Lock()
	f.foreign = foreign
	f.peer.Mu.Unlock()
}

// takeForeign removes the calls that were enqueued before it was known that this server
// must not be used for them, and returns why.
func (f *fitness) takeForeign() (away []Call, why *driver.Refusal) {
	f.peer.Mu.Lock()
	defer f.peer.Mu.Unlock()
	if f.foreign == nil {
		return nil, nil
	}
	f.peer.Waiting.Remove(func(c *Call) bool {
		if !c.Command.Script.Does(script.Keeps) {
			return false
		}
		away = append(away, *c)
		return true
	})
	return away, f.foreign
}

// soloUse is the note that this client leaves on a server which it uses alone. It is guarded by
// the mutex of the node's peer.
type soloUse struct {
	until   time.Time     // before then, the note outlasts every lease of this client
	longest time.Duration // that the note allows for
	denied  bool          // the user may not leave one
}

// noteUseLocked enqueues the note before a call that keeps a lock, if it is due.
func (n *Node) noteUseLocked(now time.Time) {
	if !n.isSingle() || n.solo.denied || n.Shared.KeyOf != nil {
		return
	}
	longest := min(max(n.Shared.LongestTTL(), store.MinTTL), math.MaxInt64/2)
	if longest <= n.solo.longest && now.Add(longest).Before(n.solo.until) {
		return
	}
	n.solo.until, n.solo.longest = now.Add(2*longest), longest
	n.Shared.askLocked(&n.Peer, membership.UseAloneCommand(2*longest, n.Shared.user), n.useNoted)
}

// useNoted handles the reply to the note. If the server belongs to others by now, nothing counts
// that was sent after it.
func (n *Node) useNoted(r script.Reply) {
	n.Mu.Lock()
	w, other := n.PipeLocked(), false
	switch list := r.Value.List; {
	case script.IsDenied(r.Err):
		n.solo.denied = true
		n.Log.Warn("cannot note that this client uses the server alone, so that clients with another list may take the server away", "err", r.Err)
	case r.Outcome != store.Granted || len(list) == 0:
		n.solo.until = time.Time{}
	case list[0].Num != 1:
		n.solo.until, other = time.Time{}, true
	}
	n.Mu.Unlock()
	if other && w != nil {
		w.Abandon(errMembershipChanged)
	}
}
