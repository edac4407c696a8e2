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
	} else if list, other := f.core.membership.Others(mark); other {
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
func (f *fitness) takeForeign() (away []call, why *driver.Refusal) {
	f.peer.Mu.Lock()
	defer f.peer.Mu.Unlock()
	if f.foreign == nil {
		return nil, nil
	}
	f.peer.Waiting.Remove(func(c *call) bool {
		if !c.command.Script.Keeps() {
			return false
		}
		away = append(away, *c)
		return true
	})
	return away, f.foreign
}
