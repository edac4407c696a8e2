package redisstore

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
)

// A server that restarts without its data, is emptied, or is replaced by
// another that does not have all of it, would grant locks that are held. So it
// grants nothing until every lease it may have forgotten has ended: Redlock's
// "delayed restarts", enforced by the clients.
//
// The mark is a key on the server which says whether it may grant, and which run
// of the server that was said of; see internal/nodemark. The scripts that grant
// look at it, in the same step and without another round trip, and compare the run
// with the one that the client connected to: a server that was emptied has lost the
// mark, and one that was given another server's data has that one's. And because a
// restart breaks every connection, each new one begins with a look whether the mark
// is of this run; see scripts/arrive.lua.
//
// A quarantine ends when the wall clocks of the server and of the client that says so
// have both passed the end in the mark. A client that is there all the time counts
// for itself as well, by a clock that nobody sets.
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
		c, known := n.arrival(true), n.wire == nil || n.server.runID != "" || n.durable() == "asserted"
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

// arrival returns the command that sees to the mark, nil if the client cannot tell one
// run of the server from another. What the server said of itself counts on a new
// connection only: later it may be out of date. The mutex is held.
func (n *node) arrival(isNew bool) *command {
	id, durable := n.server, n.durable()
	if id.runID == "" && durable != "asserted" {
		return nil
	}
	if !isNew {
		id.replication, durable = "", "unasked"
	}
	promoted := "0"
	if id.promoted {
		promoted = "1"
	}
	c := new(command)
	b := appendWord(c.begin(arriveScript), markKey)
	token := uint64(0)
	if n.granted.token > 0 && n.s.o.Clock.Now().Sub(n.granted.at) < counterLife-maxClockError {
		token = n.granted.token
		b = appendCounterKey(b, string(n.granted.name))
	} else {
		b = appendWord(b, markKey) // which is no counter
	}
	b = appendWord(appendWord(b, n.s.lists.print), n.s.lists.text)
	b = appendWord(b, cmp.Or(id.runID, nodemark.Unknown))
	b = appendWord(b, cmp.Or(id.replication, nodemark.Unknown))
	b = appendWord(b, promoted)
	b = appendNumber(b, uint64(n.s.quarantine().Microseconds()))
	b = appendNumber(b, uint64(max(0, n.s.wall().UnixMicro())))
	c.bytes = appendNumber(appendWord(b, durable), token)
	return c
}

// maxClockError is by how much the clocks of client and server may differ in a day.
const maxClockError = time.Hour

// durable says whether the server appends every write before it answers. Only a client
// that may read the configuration says always: others that arrive take that back, since
// what the server does while they write is not known, unless it was asserted.
func (n *node) durable() string {
	switch id := n.server; {
	case id.readable && id.appends && id.always:
		return "always"
	case id.readable:
		return "never"
	case n.s.o.FsyncAlways:
		return "asserted"
	}
	return "unknown"
}

var errUnidentified = errors.New("the server does not say whether it was restarted, and might have forgotten leases: permit the user INFO, or set fsync=always in the URL if the server appends every write before it answers")

// arrive sees to the mark on a new connection. A server that can tell us unasked is to
// say when its data is replaced.
func (n *node) arrive(w *wire, tells bool) error {
	n.mu.Lock()
	c := n.arrival(true)
	n.mu.Unlock()
	if c == nil {
		return errUnidentified
	}
	commands := []*command{c}
	if tells { // before we look, so that nothing is missed
		commands = []*command{trackCommand, c}
	}
	all, err := w.exchange(commands)
	if err != nil {
		return err
	}
	said := all[len(all)-1]
	if said.kind == '-' {
		err := newRefused(said)
		if !isDenied(err.Error()) {
			return err
		}
		outcome, err := classifyReply(err.Error())
		n.setUnmarked(&driver.Refusal{Outcome: outcome, Err: err})
		return nil
	}
	if all[0].kind == '-' && tells {
		n.log.Warn("the server will not tell us if its data is replaced: that shows only when we connect again", "err", all[0].String())
	}
	return n.arrived(said, true)
}

func (n *node) setUnmarked(why *driver.Refusal) {
	n.mu.Lock()
	n.unmarked, n.lookAt = why, time.Now().Add(markPause)
	n.mu.Unlock()
}

// markPause is how long a mark that we cannot use is left alone before it is looked at
// again: an operator may have written another.
const markPause = time.Second

// stillUnmarkedLocked has the mark looked at again now and then.
func (n *node) stillUnmarkedLocked() {
	if now := time.Now(); n.wire != nil && now.After(n.lookAt) {
		n.lookAt = now.Add(markPause)
		n.lookLocked()
	}
}

// arrived takes in what the arrive script said, on a new connection or another.
func (n *node) arrived(said value, isNew bool) error {
	list := said.list
	switch {
	case len(list) == 2 && list[0].num == 5:
		outcome := otherVersion(list[1])
		n.log.Warn("node can not be used", "err", outcome.Err)
		n.setUnmarked(&driver.Refusal{Outcome: outcome.Outcome, Err: outcome.Err})
		return nil
	case len(list) != 6 || list[0].num != 1:
		return notUnderstood(said)
	}
	why := string(list[2].text)
	n.mu.Lock()
	n.unmarked, n.granted.token = nil, 0
	n.print, n.before = string(list[4].text), string(list[5].text)
	shut := shutFor(list[1], list[2], store.NodeOutcome{})
	if shut.Outcome == store.Quarantined {
		n.countLocked(shut)
	} else if why == nodemark.Declared {
		n.shut = count{}
	}
	n.mu.Unlock()
	if shut.Outcome == store.Quarantined && !n.s.o.declares {
		n.log.Warn("node is in quarantine", "why", shut.Err)
	}
	n.s.lasts(n, list[3])
	if isNew && n.s.lists.excluded(string(list[4].text)) {
		n.reconsider()
	}
	n.s.adopt()
	return nil
}

// count is a node's quarantine as this client counts it.
type count struct {
	until clock.Instant // zero: there is none
	why   string
}

// countLocked begins to count a quarantine, or goes on for longer. No server can have
// us count for less: its clock may have been set.
func (n *node) countLocked(shut store.NodeOutcome) {
	n.shut.until = max(n.shut.until, n.s.o.Clock.Now().Add(shut.ExpiresIn))
	var q *quarantineError
	if errors.As(shut.Err, &q) {
		n.shut.why = q.why
	}
}

// leftLocked is how long the quarantine lasts by our own count.
func (n *node) leftLocked() time.Duration {
	if n.shut.until == 0 {
		return 0
	}
	return max(0, n.shut.until.Sub(n.s.o.Clock.Now()))
}

// isCounting says whether our own count of the node's quarantine is not over.
func (n *node) isCounting() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leftLocked() > 0
}

// isShut takes in that the node refused to grant because of quarantine, and returns
// that as it is to be told. If we knew nothing of it, something has happened to the server
// while we were connected. If it was emptied, that is noted; otherwise we connect again,
// and look what has become of it.
func (n *node) isShut(said store.NodeOutcome) store.NodeOutcome {
	var q *quarantineError
	errors.As(said.Err, &q)
	n.mu.Lock()
	w, left := n.wire, n.leftLocked()
	switch {
	case left > said.ExpiresIn:
		said.ExpiresIn, said.Err = left, &quarantineError{n.shut.why, left}
	case n.shut.until != 0:
	case q != nil && q.why == "emptied":
		n.countLocked(said)
		n.lookLocked()
	case w != nil:
		defer w.abandon(errShut)
	}
	n.mu.Unlock()
	return said
}

var errShut = errors.New("the server is in quarantine, which it was not when the connection was made")

// reopenLocked has the mark looked at before c, if c needs the node to be open and our
// count of its quarantine is over.
func (n *node) reopenLocked(c *command) {
	if c.script.gated() && n.shut.until != 0 && n.leftLocked() == 0 {
		n.shut = count{}
		n.lookLocked()
	}
}

// lookLocked has the mark looked at.
func (n *node) lookLocked() {
	if c := n.arrival(false); c != nil && !n.closed && n.waiting.n < maxLine {
		n.s.inFlight.Add(1)
		n.waiting.push(call{command: c, timeout: n.s.o.ConnectTimeout, to: nobody{}})
		n.wake()
	}
}

// dropLooksLocked takes back looks that were put in line before the connection that is
// about to be used was made. It began with one, perhaps at another run of the server.
func (n *node) dropLooksLocked() {
	for range n.waiting.n {
		if c, _ := n.waiting.pop(); c.command.script == arriveScript {
			n.s.inFlight.Add(-1)
		} else {
			n.waiting.push(c)
		}
	}
}

// remember keeps which grant of the node a client has seen last: a server that does not
// know of it is another, or has lost data.
func (n *node) remember(c *command, a driver.Answer) {
	if a.Kind != quorum.Yes || a.Token == 0 || c.script != guardedScript {
		return
	}
	name := c.firstKey()
	n.mu.Lock()
	n.granted.name, n.granted.token, n.granted.at = append(n.granted.name[:0], name...), a.Token, a.At
	n.mu.Unlock()
}

// grant is one that a client was given.
type grant struct {
	name  []byte // of the lock
	token uint64
	at    clock.Instant
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
		if n != told && n.wire != nil {
			n.lookLocked()
		}
		n.mu.Unlock()
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
	return store.NodeOutcome{Outcome: store.Quarantined, ExpiresIn: d, Err: &quarantineError{string(why.text), d}}
}

// otherVersion is the outcome of a node whose mark has a version that we do not know.
func otherVersion(version value) store.NodeOutcome {
	return store.NodeOutcome{Outcome: store.Refused, Err: &nodemark.VersionError{Version: string(version.text)}}
}

// quarantineError says why a node grants nothing for now.
type quarantineError struct {
	why  string // as the mark has it
	left time.Duration
}

func (e *quarantineError) Error() string {
	return fmt.Sprintf("%s; it takes part again in %v", reasonOf(e.why), store.Round(e.left))
}

// reasonOf says in a sentence why a mark shuts a node.
func reasonOf(why string) string {
	switch why {
	case "empty":
		return "it is new or was emptied, and may have forgotten leases"
	case "emptied":
		return "it was emptied or has evicted keys, and may have forgotten leases"
	case "restarted":
		return "it was restarted, and may have forgotten leases"
	case "replaced":
		return "it took the place of another server, and may not know all leases"
	case "behind":
		return "it has lost a lock that this client was granted, and may have forgotten leases"
	}
	return "it may have forgotten leases (" + strconv.Quote(why) + ")"
}
