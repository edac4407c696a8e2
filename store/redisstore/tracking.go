package redisstore

import "errors"

// A server whose data is replaced by its own replica's, which is behind, has a mark that
// names the server itself: no script can see that. But a server tells clients that track
// keys when it drops all of them. Then its replication ID is compared with the one it had
// when we connected: a mere FLUSHALL leaves that as it is, and is seen by the lack of a mark.

// trackCommand asks a server to say when keys that begin as the mark does are written by
// others, which is seldom, or dropped.
var trackCommand = newCommand("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", markKey, "NOLOOP")

// infoCommand asks what a server says of itself; see compare.
var infoCommand = newCommand("INFO", "replication")

var errReplaced = errors.New("the server's data was replaced by that of another server")

// isInvalidation says whether it is a message about keys that are tracked.
func (v value) isInvalidation() bool {
	return v.kind == '>' && len(v.list) == 2 && string(v.list[0].text) == "invalidate"
}

// invalidated takes in such a message. One that names no keys is about all of them.
func (w *wire) invalidated(v value) {
	if !v.list[1].null {
		return
	}
	n := w.n
	n.s.inFlight.Add(1)
	n.mu.Lock()
	n.waiting.push(call{command: infoCommand, timeout: n.s.o.ConnectTimeout, to: nobody{}})
	n.wake()
	n.mu.Unlock()
}

// compare connects again if the server is not the one that we connected to any more.
func (n *node) compare(info value) {
	is := parseIdentity(info, value{})
	n.mu.Lock()
	was, w := n.server, n.wire
	n.mu.Unlock()
	if w != nil && (is.role != was.role || is.replication != was.replication) {
		w.abandon(errReplaced)
	}
}
