package node

import (
	"errors"
	"sync"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
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

// trackCommand is sent over a connection that began without it; see guardLocked.
var trackCommand = &script.Command{Bytes: membership.TrackCommand, Repeats: true}

// infoCommand reads the replication ID; see Session.compare.
var infoCommand = script.NewCommand("INFO", "replication")

var errReplaced = errors.New("the server's data was replaced by that of another server")

// comparison is what a connection withholds while it compares the server's replication ID.
type comparison struct {
	due      bool       // the server dropped all keys, and has not answered infoCommand since; of the reader
	withheld []withheld // in order; guarded by the mutex of the node's peer
}

// withheld is the reply to a call, or, if the call has no command, a push.
type withheld struct {
	call  Call
	reply script.Reply
}

func (x *comparison) withhold(mu *sync.Mutex, c Call, r script.Reply) {
	r.Value = r.Value.Clone()
	mu.Lock()
	x.withheld = append(x.withheld, withheld{c, r})
	mu.Unlock()
}

func (x *comparison) take(mu *sync.Mutex) []withheld {
	mu.Lock()
	defer mu.Unlock()
	all := x.withheld
	x.withheld = nil
	return all
}

// lose answers the calls whose replies are withheld, with answer: they may have been executed.
func (x *comparison) lose(mu *sync.Mutex, answer func(Call, script.Reply), outcome store.Outcome, err error) {
	for _, h := range x.take(mu) {
		if h.call.Command != nil {
			answer(h.call, script.Reply{Outcome: outcome, Err: err, Sent: true})
		}
	}
}
