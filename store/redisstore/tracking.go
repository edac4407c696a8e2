package redisstore

import (
	"errors"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// If a server's data is replaced by that of its own replica, which lags behind, the mark
// still names this server, and no script can notice. But a server notifies clients that
// track keys when it drops all of them. The client then compares the server's replication
// ID with the one it had at the start of the connection. FLUSHALL does not change that
// ID; the missing mark shows it.
//
// The notification arrives before the answers that the server gives on the new data. But
// calls may have been sent ahead of the comparison. So until it is over, the client
// withholds answers about locks, and pushes. If the data was replaced, they are lost with
// the connection, as if it had broken before they arrived.

// infoCommand reads the replication ID; see compare.
var infoCommand = script.NewCommand("INFO", "replication")

var errReplaced = errors.New("the server's data was replaced by that of another server")

// comparison is what a connection withholds while it compares the server's replication ID.
type comparison struct {
	due      bool       // the server dropped all keys, and has not answered infoCommand since; of the reader
	withheld []withheld // in order; guarded by the node's mutex
}

// withheld is the reply to a call, or, if the call has no command, a push.
type withheld struct {
	call  call
	reply script.Reply
}

// invalidated handles such a push. If it names no keys, it is about all of them.
func (w *wire) invalidated(v resp.Value) {
	if !v.List[1].Null {
		return
	}
	w.comparison.due = true
	n := w.n
	n.s.inFlight.Add(1)
	n.mu.Lock()
	n.waiting.push(call{command: infoCommand, timeout: n.s.o.ConnectTimeout, to: nobody{}})
	n.wake()
	n.mu.Unlock()
}

// finish delivers a reply of the server over w, or withholds it.
func (x *comparison) finish(w *wire, c call, r script.Reply) {
	switch {
	case c.command == infoCommand:
		x.compare(w, r.Value)
	case x.due && c.command.Script != nil:
		x.withhold(w.n, c, r)
		return
	}
	w.n.finish(c, r)
}

func (x *comparison) withhold(n *node, c call, r script.Reply) {
	r.Value = r.Value.Clone()
	n.mu.Lock()
	x.withheld = append(x.withheld, withheld{c, r})
	n.mu.Unlock()
}

// compare ends the connection w if the server's role or data has been replaced since it
// was made. Otherwise it delivers what was withheld.
func (x *comparison) compare(w *wire, info resp.Value) {
	is := membership.ParseIdentity(info, resp.Value{})
	w.n.mu.Lock()
	was := w.n.server
	w.n.mu.Unlock()
	if is.Role != was.Role || is.Replication != was.Replication {
		w.abandon(errReplaced)
		return
	}
	x.due = false
	at := w.at
	for _, h := range x.take(w.n) {
		if h.call.command == nil {
			w.at = h.reply.At
			w.handlePush(h.reply.Value)
		} else {
			w.n.finish(h.call, h.reply)
		}
	}
	w.at = at
}

// lose answers the calls whose replies are withheld: they may have been executed.
func (x *comparison) lose(n *node, outcome store.Outcome, err error) {
	for _, h := range x.take(n) {
		if h.call.command != nil {
			n.finish(h.call, script.Reply{Outcome: outcome, Err: err, Sent: true})
		}
	}
}

func (x *comparison) take(n *node) []withheld {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := x.withheld
	x.withheld = nil
	return all
}
