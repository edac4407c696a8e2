package redis

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/majority"
	"github.com/leasehold-dev/leasehold/store"
)

// A server that restarts without its data, is emptied, or is replaced by
// another that does not have all of it, would grant locks that are held. So it
// grants nothing until every lease it may have forgotten has ended: Redlock's
// "delayed restarts", seen to by the clients.
//
// The mark is a key on the server which says from when on it may grant, and
// which run of the server that was said of. The scripts that grant look at it,
// in the same step and without another round trip: a server that was emptied
// has lost it. And because a restart breaks every connection, each new one
// begins with a look whether the mark is of this run; see scripts/arrive.lua.
const markKey = "leasehold:node"

// guards says whether a request is only for servers that have forgotten nothing.
func (s *Store) guards(r store.Request) bool {
	return len(s.nodes) > 1 || r.Require >= store.CrashSafe && s.route == nil
}

// guard sees to the mark of a single server, the first time that a lock requires
// it: connections to come begin with it, and on the one that is there it goes
// before the request that follows.
func (s *Store) guard() error {
	if s.armed.Load() {
		return nil
	}
	s.arming.Lock()
	defer s.arming.Unlock()
	for _, n := range s.nodes {
		n.mu.Lock()
		c, known := n.arrival(), n.wire == nil || n.server.runID != "" || n.remembers()
		n.mu.Unlock()
		if !known {
			said := store.NodeOutcome{Node: n.Addr(), Outcome: store.Refused, Err: errUnidentified}
			return &store.QuorumError{Op: "acquire", Need: 1, Nodes: []store.NodeOutcome{said}}
		}
		s.guarded.Store(true)
		if c != nil {
			n.put(call{command: c, timeout: s.o.ConnectTimeout, to: nobody{}}, true)
		}
	}
	s.armed.Store(true)
	return nil
}

// arrival is the command that sees to the mark, nil if nothing is known of the
// server. The mutex is held.
func (n *node) arrival() *command {
	id := n.server
	if id.runID == "" {
		return nil
	}
	up := id.uptime + time.Since(n.since)
	why, remembers := "restarted", "0"
	if id.promoted { // since when it lacks something can not be told
		up, why = 0, "replaced"
	}
	if n.remembers() {
		remembers = "1"
	}
	c := new(command)
	b := appendWord(appendWord(c.begin(arriveScript), markKey), id.runID)
	b = appendNumber(b, uint64(n.s.quarantine().Microseconds()))
	b = appendNumber(b, uint64(up.Microseconds()))
	c.bytes = n.s.lists.append(appendWord(appendWord(b, remembers), why))
	return c
}

// remembers says whether a restart of the server forgets nothing.
func (n *node) remembers() bool {
	id := n.server
	if id.readable {
		return id.appends && id.always && !id.promoted
	}
	return n.s.o.FsyncAlways
}

var errUnidentified = errors.New("the server does not say whether it was restarted, and might have forgotten leases: permit the user INFO, or set fsync=always in the URL if the server appends every write before it answers")

// arrive sees to the mark on a new connection.
func (n *node) arrive(w *wire) error {
	n.mu.Lock()
	c, trusted := n.arrival(), n.remembers()
	n.mu.Unlock()
	if c == nil && !trusted {
		return errUnidentified
	} else if c == nil {
		c = new(command)
		b := appendWord(appendWord(c.begin(arriveScript), markKey), "-")
		b = appendNumber(appendNumber(b, uint64(n.s.quarantine().Microseconds())), 0)
		c.bytes = n.s.lists.append(appendWord(appendWord(b, "1"), "restarted"))
	}
	said, err := w.exchange([]*command{c})
	if err != nil {
		return err
	}
	var unmarked *majority.Refusal
	if said[0].kind == '-' {
		err := newRefused(said[0])
		if !isDenied(err.Error()) {
			return err
		}
		outcome, err := classifyReply(err.Error())
		unmarked = &majority.Refusal{Outcome: outcome, Err: err}
	}
	n.mu.Lock()
	n.unmarked = unmarked
	n.mu.Unlock()
	if unmarked != nil {
		return nil
	}
	if list := said[0].list; len(list) == 3 {
		n.s.lasts(n, list[2])
		if shut := shutFor(list[0], list[1], store.NodeOutcome{}); shut.Outcome == store.Quarantined {
			n.log.Warn("node is in quarantine", "why", shut.Err)
			n.isShut(shut)
		}
		return nil
	}
	return notUnderstood(said[0])
}

// quarantine is how long a server that may have forgotten leases grants nothing: for as
// long as the leases of any client may last, as far as servers know of them.
func (s *Store) quarantine() time.Duration {
	return max(s.o.quarantine(), time.Duration(s.longest.Load()))
}

// lasts takes in the longest quarantine that a node was asked for by anybody. Others may
// have forgotten that, and have been told of a shorter one by us.
func (s *Store) lasts(told *node, quarantine value) {
	us, _ := quarantine.number()
	d := time.Duration(min(us, 1<<50)) * time.Microsecond
	if d <= s.quarantine() {
		return
	}
	s.longest.Store(int64(d))
	told.log.Warn("there are clients with a longer max_ttl, which should be the same for all: quarantines last as long as theirs", "quarantine", d, "ours", s.o.quarantine())
	for _, n := range s.nodes {
		n.mu.Lock()
		c := n.arrival()
		n.mu.Unlock()
		if c != nil && n != told {
			n.put(call{command: c, timeout: s.o.ConnectTimeout, to: nobody{}}, false)
		}
	}
}

// shutFor is the outcome of a node whose quarantine lasts for that many
// microseconds more, or otherwise if it is over.
func shutFor(left, why value, otherwise store.NodeOutcome) store.NodeOutcome {
	us, ok := left.number()
	if !ok || us == 0 {
		return otherwise
	}
	d := time.Duration(min(us, 1<<50)) * time.Microsecond
	return store.NodeOutcome{Outcome: store.Quarantined, ExpiresIn: d, Err: &quarantineError{reasonOf(string(why.text)), d}}
}

// quarantineError says why a node grants nothing for now.
type quarantineError struct {
	reason string
	left   time.Duration
}

func (e *quarantineError) Error() string {
	return fmt.Sprintf("%s; it takes part again in %v", e.reason, store.Round(e.left))
}

// reasonOf puts the mark's last word into more of them.
func reasonOf(why string) string {
	switch why, _, _ = strings.Cut(why, ":"); why {
	case "empty":
		return "it is new or was emptied, and may have forgotten leases"
	case "emptied":
		return "it was emptied or has evicted keys, and may have forgotten leases"
	case "restarted":
		return "it was restarted, and may have forgotten leases"
	case "replaced":
		return "it took the place of another server, and may not know all leases"
	}
	return "it may have forgotten leases (" + strconv.Quote(why) + ")"
}
