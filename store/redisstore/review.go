package redisstore

import (
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// A server's settings and role can change under a connection: CONFIG SET turns off the
// sync of its file, or lets it evict keys, and REPLICAOF makes it a replica. So the client
// reads them again every half of the longest TTL. If they have changed, it connects anew,
// which refuses an unfit server and updates the claim of durability in the mark. A change
// that is reverted before the next review goes unnoticed.

// review schedules the reviews of a node. It is guarded by the node's mutex.
type review struct {
	due   time.Time
	under bool       // the reply to the last one is outstanding
	fsync resp.Value // of the review that is under way: the reply to settingsCommand
}

var (
	settingsCommand = &script.Command{Bytes: script.NewCommand("CONFIG", "GET", "*appendfsync*").Bytes, Repeats: true}
	identityCommand = &script.Command{Bytes: script.NewCommand("INFO").Bytes, Repeats: true}
)

var errChanged = errors.New("the server's settings have changed")

// reviews reports whether changes of the server matter: only marks, and the fitness of one
// of several nodes, depend on them. A cluster's slot map and the sentinels tell of changes
// themselves.
func (n *node) reviews() bool {
	return n.s.guarded.Load() && n.s.topology.class() >= store.CrashSafe
}

// startReviewLocked schedules the first review of a new connection.
func (n *node) startReviewLocked(now time.Time) {
	n.review = review{due: now.Add(clockPause(n.s.o.MaxTTL))}
}

// reviewLocked sends a review if one is due. The connection is in use, and the mutex is
// held.
func (n *node) reviewLocked(now time.Time) {
	if now.Before(n.review.due) {
		return
	}
	n.review.due = now.Add(clockPause(n.s.o.MaxTTL))
	if !n.reviews() || n.review.under || n.closed {
		return
	}
	n.review.under, n.review.fsync = true, resp.Value{}
	commands := []*script.Command{identityCommand}
	if n.server.Readable {
		commands = []*script.Command{settingsCommand, identityCommand}
	}
	for _, c := range commands {
		n.s.inFlight.Add(1)
		n.waiting.push(call{command: c, timeout: n.s.o.ConnectTimeout})
	}
	n.wake()
}

// settingsRead keeps the settings until the rest of the review has arrived.
func (n *node) settingsRead(r script.Reply) {
	n.mu.Lock()
	n.review.fsync = r.Value.Clone()
	n.mu.Unlock()
}

// reviewed connects anew if the server is not as it was when the connection was made.
func (n *node) reviewed(r script.Reply) {
	n.mu.Lock()
	is, was, w := membership.ParseIdentity(r.Value, n.review.fsync), n.server, n.wire
	n.review.under = false
	n.mu.Unlock()
	switch {
	case r.Outcome != store.Granted || w == nil:
		return
	case is.Role != was.Role || is.Replication != was.Replication:
		w.abandon(errReplaced)
	case is.Appends != was.Appends || is.Readable != was.Readable || is.Always != was.Always || (is.Unfit() == nil) != (was.Unfit() == nil):
		w.replace(errChanged)
	default:
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lookLocked() // so that it connects now, although nobody asks for anything
}
