package node

import (
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// A server's settings and role can change under a connection: CONFIG SET turns off the
// sync of its file, or lets it evict keys, and REPLICAOF makes it a replica. So the client
// reads them again every half of the longest TTL. If they have changed, it connects anew,
// which refuses an unfit server and updates the claim of durability in the mark. A change
// that is reverted before the next review goes unnoticed.

// review schedules the reviews of a node. It is guarded by the mutex of the node's peer.
type review struct {
	shared *Shared
	peer   *conn.Peer[Call]
	is     *fitness // has what the server said when the connection was made

	due   time.Time
	under bool       // the reply to the last one is outstanding
	fsync resp.Value // of the review that is under way: the reply to settingsCommand
}

var (
	settingsCommand = &script.Command{Bytes: script.NewCommand("CONFIG", "GET", "*appendfsync*").Bytes, Repeats: true}
	identityCommand = &script.Command{Bytes: script.NewCommand("INFO").Bytes, Repeats: true}
)

var errChanged = errors.New("the server's settings have changed")

// wanted reports whether changes of the server matter: only marks, and the fitness of one
// of several nodes, depend on them. A cluster's slot map and the sentinels tell of changes
// themselves.
func (v *review) wanted() bool {
	return v.shared.Guarded.Load() && v.shared.Class >= store.CrashSafe
}

// startLocked schedules the first review of a new connection.
func (v *review) startLocked(now time.Time) {
	v.due, v.under, v.fsync = now.Add(clockPause(v.shared.Config.MaxTTL)), false, resp.Value{}
}

// askLocked sends a review if one is due. The connection is in use.
func (v *review) askLocked(now time.Time) {
	if now.Before(v.due) {
		return
	}
	v.due = now.Add(clockPause(v.shared.Config.MaxTTL))
	if !v.wanted() || v.under || v.peer.ClosedLocked() {
		return
	}
	v.under, v.fsync = true, resp.Value{}
	if v.is.server.Readable {
		v.shared.askLocked(v.peer, settingsCommand, v.settingsRead)
	}
	v.shared.askLocked(v.peer, identityCommand, v.done)
}

// settingsRead keeps the settings until the rest of the review has arrived.
func (v *review) settingsRead(r script.Reply) {
	v.peer.Mu.Lock()
	v.fsync = r.Value.Clone()
	v.peer.Mu.Unlock()
}

// done connects anew if the server is not as it was when the connection was made.
func (v *review) done(r script.Reply) {
	v.peer.Mu.Lock()
	is, was, w := membership.ParseIdentity(r.Value, v.fsync), v.is.server, v.peer.PipeLocked()
	v.under = false
	v.peer.Mu.Unlock()
	switch {
	case r.Outcome != store.Granted || w == nil:
		return
	case is.Role != was.Role || is.Replication != was.Replication:
		w.Abandon(errReplaced)
	case is.Appends != was.Appends || is.Readable != was.Readable || is.Always != was.Always || (is.Unfit() == nil) != (was.Unfit() == nil):
		w.Replace(errChanged)
	default:
		return
	}
	v.peer.Mu.Lock()
	defer v.peer.Mu.Unlock()
	v.is.lookLocked() // so that it connects now, although nobody asks for anything
}
