package redisstore

import (
	"errors"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// If a server's data is replaced by that of its own replica, which lags behind, the mark
// still names this server, and no script can notice. But a server notifies clients that
// track keys when it drops all of them. The client then compares the server's replication
// ID with the one it had at the start of the connection. FLUSHALL does not change that
// ID; the missing mark shows it.

// infoCommand reads the replication ID; see compare.
var infoCommand = script.NewCommand("INFO", "replication")

var errReplaced = errors.New("the server's data was replaced by that of another server")

// invalidated handles such a push. If it names no keys, it is about all of them.
func (w *wire) invalidated(v resp.Value) {
	if !v.List[1].Null {
		return
	}
	n := w.n
	n.s.inFlight.Add(1)
	n.mu.Lock()
	n.waiting.push(call{command: infoCommand, timeout: n.s.o.ConnectTimeout, to: nobody{}})
	n.wake()
	n.mu.Unlock()
}

// compare ends the connection if the server's role or data has been replaced since it was
// made.
func (n *node) compare(info resp.Value) {
	is := membership.ParseIdentity(info, resp.Value{})
	n.mu.Lock()
	was, w := n.server, n.wire
	n.mu.Unlock()
	if w != nil && (is.Role != was.Role || is.Replication != was.Replication) {
		w.abandon(errReplaced)
	}
}
