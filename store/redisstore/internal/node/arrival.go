package node

import (
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// An arrival is a call of the script that checks the mark of a server, and updates it. A connection begins
// with one if the client wants locks there. What its reply says of other nodes goes to Others.

// arrivalLocked returns the command that checks the mark and updates it; nil if the
// client cannot distinguish the runs of the server. The server's
// description of itself is used on a new connection only, since it may be outdated later.
func (f *fitness) arrivalLocked(isNew bool) *script.Command {
	id, durable := f.server, f.durable()
	if id.RunID == "" && durable != "asserted" {
		return nil
	}
	if !isNew {
		id.Replication, durable = "", "unasked"
	}
	s := f.shared
	a := membership.Arrival{List: s.Membership, Server: id, Durable: durable, Quarantine: s.Quarantine(), Wall: s.Wall(), Joins: f.joins(), Origin: f.origin}
	f.toldLong = a.Quarantine
	if f.origin != "" {
		a.Ago = s.Config.Clock.Now().Sub(clock.Instant(f.seen.Load()))
	}
	if f.granted.token > 0 && s.Config.Clock.Now().Sub(f.granted.at) < script.CounterLife-maxClockError {
		a.Lock, a.Token = f.granted.name, f.granted.token
	}
	return a.Command()
}

// updated handles the reply of the arrive script that it has changed the mark, or cannot read it. It
// reports whether the reply says how the mark was left.
func (f *fitness) updated(said resp.Value) (marked bool, err error) {
	list := said.List
	switch {
	case len(list) == 2 && list[0].Num == 5:
		outcome := script.OtherVersion(list[1])
		f.log.Warn("node cannot be used", "err", outcome.Err)
		f.setUnmarked(&driver.Refusal{Outcome: outcome.Outcome, Err: outcome.Err})
		return false, nil
	case len(list) != 7 || list[0].Num != 1:
		return false, resp.Unexpected(said)
	}
	why := string(list[2].Text)
	f.peer.Mu.Lock()
	f.unmarked = nil
	f.fingerprint, f.before, f.origin = string(list[4].Text), string(list[5].Text), string(list[6].Text)
	f.seen.Store(int64(f.shared.Config.Clock.Now()))
	if f.stands, f.usedBy, f.forgot = Member, "", 0; !f.isAlone {
		f.foreign = nil
	}
	found := script.QuarantinedOr(list[1], list[2], store.NodeOutcome{})
	if found.Outcome == store.Quarantined {
		f.granted.token = 0 // or it would begin anew each time that we connect
		f.countLocked(found)
	} else if why == nodemark.Declared {
		f.quarantined = quarantineCount{}
	}
	f.peer.Mu.Unlock()
	if found.Outcome == store.Quarantined && !f.shared.Declares {
		f.log.Warn("node is in quarantine", "why", found.Err)
	}
	return true, nil
}

// starts reports whether a new connection begins with a check of the mark that may change it: the
// client wants locks there, and the server may keep them.
func (n *Node) starts(looks bool) (bool, error) {
	if looks {
		n.Shared.Others.Looked()
	}
	n.Mu.Lock()
	defer n.Mu.Unlock()
	n.heard, n.arrives = false, false
	if !n.Shared.Guarded.Load() || !MarksLooked {
		return false, nil
	}
	if n.server.RunID == "" && n.durable() != "asserted" {
		return false, membership.ErrUnidentified
	}
	n.arrives = n.isSingle() || n.Shared.Taking.Load() && n.foreign == nil
	return n.arrives, nil
}

// arrive checks the mark over a new connection.
func (n *Node) arrive(p *conn.Pipe[Call]) error {
	n.Mu.Lock()
	c := n.arrivalLocked(true)
	n.Mu.Unlock()
	if c == nil {
		return membership.ErrUnidentified
	}
	all, err := p.Exchange(c.Bytes)
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
	return n.Arrived(said, true)
}

// Arrival returns the command that checks the mark on a connection in use; nil if there is none.
func (n *Node) Arrival() *script.Command {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	return n.arrivalLocked(false)
}

// ArriveFirst has the mark checked before anything that waits to be sent. It returns false if there is
// nothing to wait for: the server is not connected, was checked already, or must not be used.
func (n *Node) ArriveFirst(to driver.Receiver) bool {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	return n.PipeLocked() != nil && !n.arrives && n.foreign == nil && n.arriveFirstLocked(to)
}

// arriveFirstLocked has the mark checked before anything that waits to be sent. It returns false
// if the client cannot check it.
func (n *Node) arriveFirstLocked(to driver.Receiver) bool {
	c := n.arrivalLocked(true)
	if c == nil {
		return false
	}
	n.arrives = true
	n.Shared.enqueueLocked(&n.Peer, Call{Command: c, Timeout: n.Shared.Config.ConnectTimeout, To: to})
	n.toFrontLocked(1)
	return true
}

// toFrontLocked moves the last of the calls that wait to be sent to the front.
func (n *Node) toFrontLocked(last int) {
	for range n.Waiting.Len() - last {
		c, _ := n.Waiting.Pop()
		n.Waiting.Push(c)
	}
}

// Arrived handles the reply of the arrive script, on a new connection or an old one.
func (n *Node) Arrived(said resp.Value, isNew bool) error {
	n.Mu.Lock()
	first := !n.heard // over this connection
	n.heard = true
	n.Mu.Unlock()
	var is News
	if refuses(said) {
		n.refused(said, isNew)
		is.Replaced = first && said.List[0].Num == 4
	} else {
		marked, err := n.updated(said)
		if err != nil || !marked {
			return err
		}
		is.Quarantine, is.Quarantined = said.List[3], first && n.isCounting()
	}
	n.Shared.Others.Heard(n, is)
	return nil
}

// refuses reports whether the arrive script has changed nothing.
func refuses(said resp.Value) bool {
	if len(said.List) == 0 {
		return false
	}
	switch said.List[0].Num {
	case 4:
		return len(said.List) == 4
	case 6:
		return len(said.List) == 2
	}
	return said.List[0].Num == 7
}

// refused handles the reply of the arrive script that it has changed nothing. What was sent behind an
// arrival over a connection in use may have been executed on a server that is not to be used, so
// its replies must not count.
func (n *Node) refused(said resp.Value, isNew bool) {
	n.Mu.Lock()
	was, w := n.foreign, n.PipeLocked()
	n.usedBy, n.unmarked = "", nil
	switch said.List[0].Num {
	case 4:
		n.stands = Theirs
		n.fingerprint, n.before = string(said.List[2].Text), string(said.List[3].Text)
	case 6:
		n.stands, n.usedBy = Theirs, string(said.List[1].Text)
	case 7:
		n.stands = Free
	}
	n.barLocked()
	why := n.foreign
	n.Mu.Unlock()
	if why != nil && (was == nil || was.Err.Error() != why.Err.Error()) {
		n.Log.Warn("node cannot be used", "err", why.Err)
	}
	if why != nil && was == nil && !isNew && w != nil {
		w.Abandon(why.Err)
	}
}

// Barred returns why the arrive script has changed nothing.
func (f *fitness) Barred(r script.Reply) error {
	switch list := r.Value.List; {
	case list[0].Num == 4:
		return script.OtherMembership(list[1]).Err
	case list[0].Num == 5 && len(list) == 2:
		return script.OtherVersion(list[1]).Err
	case list[0].Num == 6 && len(list) == 2:
		return usedAlone(string(list[1].Text))
	}
	return errNotJoined
}

// Look has the mark checked if the server is connected, and has a mark of ours if arrived is set.
func (n *Node) Look(arrived bool) {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	if n.PipeLocked() != nil && (n.arrives || !arrived) {
		n.lookLocked()
	}
}

// lookLocked enqueues a check of the mark.
func (f *fitness) lookLocked() {
	if c := f.arrivalLocked(false); c != nil && !f.peer.ClosedLocked() && !f.peer.FullLocked() {
		f.shared.askLocked(f.peer, c, nil)
	}
}

// dropLooksLocked removes the checks that were enqueued before a new connection was made.
// The connection began with a check of its own, perhaps on another run of the server.
func (f *fitness) dropLooksLocked() {
	f.peer.Waiting.Remove(func(c *Call) bool {
		if c.Command.Script != script.Arrive {
			return false
		}
		f.shared.Settled(1)
		return true
	})
}

// Guard has the mark checked from now on. It returns false if the client cannot distinguish the
// runs of the server.
func (n *Node) Guard() bool {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	if n.PipeLocked() != nil && n.server.RunID == "" && n.durable() != "asserted" {
		return false
	}
	n.Shared.Guarded.Store(true)
	n.guardLocked()
	return true
}

// guardLocked makes up for what the connection in use began without, if the server must now
// be checked for having forgotten leases: the server is to notify this client of replaced
// data, has the data that it had when the connection was made, and has a mark that fits.
// All of this is sent before what waits to be sent.
func (n *Node) guardLocked() {
	s, ok := n.PipeLocked().Session().(*Session)
	if !ok || !s.unguarded || !n.Shared.Guarded.Load() || !MarksLooked {
		return
	}
	s.unguarded = false
	behind := n.Waiting.Len()
	n.Shared.askLocked(&n.Peer, trackCommand, n.tracked)
	n.Shared.askLocked(&n.Peer, infoCommand, nil) // the session compares
	if c := n.arrivalLocked(true); c != nil {
		n.Shared.askLocked(&n.Peer, c, nil)
	}
	n.toFrontLocked(n.Waiting.Len() - behind)
}
