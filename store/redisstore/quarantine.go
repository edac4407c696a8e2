package redisstore

import (
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// guard makes a store with a single server check the mark, from the first lock on that
// requires it. New connections begin with the check; on the present one it is enqueued
// before the request that follows.
func (s *Store) guard() error {
	if s.armed.Load() {
		return nil
	}
	s.arming.Lock()
	defer s.arming.Unlock()
	for _, n := range s.nodes {
		n.mu.Lock()
		c, known := n.arrivalLocked(true), n.wire == nil || n.server.RunID != "" || n.durable() == "asserted"
		n.mu.Unlock()
		if !known {
			said := store.NodeOutcome{Node: n.Addr(), Outcome: store.Refused, Err: membership.ErrUnidentified}
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

// arrivalLocked returns the command that checks the mark and updates it; nil if the
// client cannot distinguish the runs of the server. The server's
// description of itself is used on a new connection only, since it may be outdated later.
func (n *node) arrivalLocked(isNew bool) *script.Command {
	id, durable := n.server, n.durable()
	if id.RunID == "" && durable != "asserted" {
		return nil
	}
	if !isNew {
		id.Replication, durable = "", "unasked"
	}
	a := membership.Arrival{List: n.s.membership, Server: id, Durable: durable, Quarantine: n.s.quarantine(), Wall: n.s.wall()}
	if n.granted.token > 0 && n.s.o.Clock.Now().Sub(n.granted.at) < script.CounterLife-maxClockError {
		a.Lock, a.Token = string(n.granted.name), n.granted.token
	}
	return a.Command()
}

// maxClockError bounds the drift of client and server clocks in a day.
const maxClockError = time.Hour

// durable says whether the server appends every write before it answers.
func (n *node) durable() string { return n.server.Durable(n.s.o.FsyncAlways) }

// arrive checks the mark on a new connection.
func (n *node) arrive(w *wire) error {
	n.mu.Lock()
	c := n.arrivalLocked(true)
	n.mu.Unlock()
	if c == nil {
		return membership.ErrUnidentified
	}
	all, err := w.Exchange(c.Bytes)
	if err != nil {
		return err
	}
	said := all[0]
	if said.Kind == '-' {
		outcome, err := script.Classify(resp.ErrorOf(said))
		if !script.IsDenied(err) {
			return resp.ErrorOf(said)
		}
		n.setUnmarked(&driver.Refusal{Outcome: outcome, Err: err})
		return nil
	}
	return n.arrived(said, true)
}

func (n *node) setUnmarked(why *driver.Refusal) {
	n.mu.Lock()
	n.unmarked, n.lookAt = why, time.Now().Add(markPause)
	n.mu.Unlock()
}

// markPause is how long a mark that this client cannot use is left alone before it is
// read again: an operator may have replaced it.
const markPause = time.Second

// stillUnmarkedLocked enqueues another check of the mark if markPause has passed.
func (n *node) stillUnmarkedLocked() {
	if now := time.Now(); n.wire != nil && now.After(n.lookAt) {
		n.lookAt = now.Add(markPause)
		n.lookLocked()
	}
}

// arrived handles the reply of the arrive script, on a new connection or an old one.
func (n *node) arrived(said resp.Value, isNew bool) error {
	list := said.List
	switch {
	case len(list) == 2 && list[0].Num == 5:
		outcome := script.OtherVersion(list[1])
		n.log.Warn("node cannot be used", "err", outcome.Err)
		n.setUnmarked(&driver.Refusal{Outcome: outcome.Outcome, Err: outcome.Err})
		return nil
	case len(list) != 6 || list[0].Num != 1:
		return resp.Unexpected(said)
	}
	why := string(list[2].Text)
	n.mu.Lock()
	n.unmarked = nil
	n.fingerprint, n.before = string(list[4].Text), string(list[5].Text)
	shut := script.QuarantinedOr(list[1], list[2], store.NodeOutcome{})
	if shut.Outcome == store.Quarantined {
		n.granted.token = 0 // or it would begin anew each time that we connect
		n.countLocked(shut)
	} else if why == nodemark.Declared {
		n.quarantined = quarantineCount{}
	}
	n.mu.Unlock()
	if shut.Outcome == store.Quarantined && !n.s.declares {
		n.log.Warn("node is in quarantine", "why", shut.Err)
	}
	n.s.lasts(n, list[3])
	if isNew && n.s.membership.Excluded(string(list[4].Text)) {
		n.recheckOmitted()
	}
	n.s.adoptOmitted()
	return nil
}

// quarantineCount is a node's quarantine as this client counts it.
type quarantineCount struct {
	until clock.Instant // zero: there is none
	why   string
}

// countLocked begins to count a quarantine, or extends it. It never shortens it: the
// server's clock may have been set.
func (n *node) countLocked(shut store.NodeOutcome) {
	n.quarantined.until = max(n.quarantined.until, n.s.o.Clock.Now().Add(shut.ExpiresIn))
	var q *script.QuarantineError
	if errors.As(shut.Err, &q) {
		n.quarantined.why = q.Why
	}
}

// leftLocked is how long the quarantine lasts by this client's count.
func (n *node) leftLocked() time.Duration {
	if n.quarantined.until == 0 {
		return 0
	}
	return max(0, n.quarantined.until.Sub(n.s.o.Clock.Now()))
}

// isCounting reports whether the node is in quarantine by this client's count.
func (n *node) isCounting() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.leftLocked() > 0
}

// quarantineSeen handles a refusal because of a quarantine, and returns the outcome to report. If
// this client did not know of the quarantine, something has happened to the server since
// it connected. If the server was emptied, the client begins to count a quarantine;
// otherwise it reconnects and checks the mark.
func (n *node) quarantineSeen(said store.NodeOutcome) store.NodeOutcome {
	var q *script.QuarantineError
	errors.As(said.Err, &q)
	n.mu.Lock()
	w, left := n.wire, n.leftLocked()
	switch {
	case left > said.ExpiresIn:
		said.ExpiresIn, said.Err = left, &script.QuarantineError{Why: n.quarantined.why, Left: left}
	case n.quarantined.until != 0:
	case q != nil && q.Why == "emptied":
		n.countLocked(said)
		n.lookLocked()
	case w != nil:
		defer w.abandon(errQuarantineBegan)
	}
	n.mu.Unlock()
	return said
}

var errQuarantineBegan = errors.New("the server went into quarantine after the connection was made")

// reopenLocked enqueues a check of the mark before c if c needs the node to be open and
// the quarantine is over by this client's count.
func (n *node) reopenLocked(c *script.Command) {
	if c.Script.Gated() && n.quarantined.until != 0 && n.leftLocked() == 0 {
		n.quarantined = quarantineCount{}
		n.lookLocked()
	}
}

// lookLocked enqueues a check of the mark.
func (n *node) lookLocked() {
	if c := n.arrivalLocked(false); c != nil && !n.closed && n.waiting.n < maxLine {
		n.s.inFlight.Add(1)
		n.waiting.push(call{command: c, timeout: n.s.o.ConnectTimeout, to: nobody{}})
		n.wake()
	}
}

// dropLooksLocked removes the checks that were enqueued before a new connection was made.
// The connection began with a check of its own, perhaps on another run of the server.
func (n *node) dropLooksLocked() {
	for range n.waiting.n {
		if c, _ := n.waiting.pop(); c.command.Script == script.Arrive {
			n.s.settled()
		} else {
			n.waiting.push(c)
		}
	}
}

// remember records the latest grant from the node. A server that does not know this grant
// is another server, or has lost data.
func (n *node) remember(c *script.Command, a driver.Reply) {
	if a.Kind == quorum.Yes && a.Token != 0 && c.Script.GrantsGuarded() {
		n.saw(c.FirstKey(), a.Token, a.At)
	}
}

// saw keeps that the node has granted the lock of that name.
func (n *node) saw(name []byte, token uint64, at clock.Instant) {
	n.mu.Lock()
	n.granted.name, n.granted.token, n.granted.at = append(n.granted.name[:0], name...), token, at
	n.mu.Unlock()
}

// grant identifies a grant that this client was given.
type grant struct {
	name  []byte // of the lock
	token uint64
	at    clock.Instant
}

// quarantine is how long a server that may have forgotten leases grants nothing: as long
// as the leases of any client may last, as far as servers know about them.
func (s *Store) quarantine() time.Duration {
	return max(s.o.Quarantine(), time.Duration(s.longest.Load()))
}

// lasts learns of the longest quarantine that any client has asked a node for. Other
// nodes may have forgotten it, and this client may have asked them for a shorter one.
func (s *Store) lasts(told *node, quarantine resp.Value) {
	us, _ := quarantine.Number()
	d := time.Duration(min(us, 1<<50)) * time.Microsecond
	if d <= s.quarantine() {
		return
	}
	s.longest.Store(int64(d))
	told.log.Warn("other clients use a longer max_ttl, so quarantines last longer; configure all clients with the same max_ttl", "quarantine", d, "ours", s.o.Quarantine())
	for _, n := range s.nodes {
		n.mu.Lock()
		if n != told && n.wire != nil {
			n.lookLocked()
		}
		n.mu.Unlock()
	}
}
