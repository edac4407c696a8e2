package node

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Standing is how a server stands to the membership of this store.
type Standing uint8

const (
	Unknown Standing = iota // it is not connected, or its mark cannot be read
	Member                  // its mark names our membership, or one of both
	Free                    // it belongs to nobody
	Theirs                  // it belongs to others, or is in use alone
)

// errNotJoined is why a server that belongs to nobody is not used yet.
var errNotJoined = errors.New("it does not belong to these servers yet, and joins them when a majority of them answers and none is in use otherwise: see the other servers; if all of them are new, run leasehold bootstrap or call redisadmin.Bootstrap")

// usedAlone is why a server does not join that another client uses alone.
func usedAlone(client string) error {
	return fmt.Errorf("it is in use alone, by %q: give all clients the same servers; to make it one of several, give all clients both lists (next=) and run leasehold replace; if nobody uses it alone any more, run leasehold bootstrap, or wait until the leases there have ended", client)
}

// looked learns from the mark, and from the note of those that use the server alone, how a
// server stands to this store. It writes nothing. A user that may not read them learns nothing.
func (f *fitness) looked(text, user resp.Value) {
	is, by, mark := Unknown, "", nodemark.New()
	if text.Kind == '$' {
		var err error
		if !text.Null {
			mark, err = nodemark.Parse(string(text.Text))
		}
		if err == nil {
			is = f.standingOf(mark)
		}
	}
	if is == Free && !f.isAlone && user.Kind == '$' && !user.Null {
		is, by = Theirs, string(user.Text)
	}
	f.peer.Mu.Lock()
	f.stands, f.usedBy, f.forgot = is, by, 0
	if mark.Run != nodemark.Unknown && f.server.RunID != "" && mark.Run != f.server.RunID && (mark.Durable == 0 || f.durable() != "always") {
		f.forgot = f.shared.Config.Clock.Now().Add(max(f.shared.Quarantine(), time.Duration(mark.Longest)*time.Microsecond))
	}
	f.peer.Mu.Unlock()
}

// Shows returns what a look at a lock says about the server: while nobody wants a lock, nobody
// writes into its mark that it may have forgotten leases.
func (f *fitness) Shows(said store.NodeOutcome) store.NodeOutcome {
	f.peer.Mu.Lock()
	forgot := f.forgot
	f.peer.Mu.Unlock()
	if q, ok := said.Err.(*script.QuarantineError); ok && q.Why == "empty" && q.Left <= time.Microsecond {
		said.ExpiresIn = f.shared.Quarantine()
		said.Err = &script.QuarantineError{Why: q.Why, Left: said.ExpiresIn}
	} else if left := forgot.Sub(f.shared.Config.Clock.Now()); forgot != 0 && left > 0 && said.Outcome == store.Absent {
		said.Outcome, said.ExpiresIn, said.Err = store.Quarantined, left, &script.QuarantineError{Why: "restarted", Left: left}
	}
	return said
}

func (f *fitness) standingOf(mark nodemark.Mark) Standing {
	l := f.shared.Membership
	switch {
	case mark.Print == nodemark.Unknown:
		return Free
	case !l.Excluded(mark.Print):
		return Member
	case l.WasAlone(mark):
		return Free // it was used alone, before
	}
	return Theirs
}

// Standing is how the server stands to this store.
func (n *Node) Standing() Standing {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	return n.stands
}

// Bar decides anew whether the server may keep locks, and has its mark checked if it may now.
func (n *Node) Bar() {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	barred := n.foreign != nil
	n.barLocked()
	if barred && n.foreign == nil && n.Shared.Taking.Load() && n.PipeLocked() != nil {
		n.lookLocked()
	}
}

// barLocked sets why the server may keep no lock, by how it stands to this store.
func (f *fitness) barLocked() {
	f.foreign = nil
	if f.stands == Theirs && f.usedBy != "" {
		f.foreign = &driver.Refusal{Outcome: store.Refused, Err: usedAlone(f.usedBy)}
	} else if f.stands == Free && !f.isAlone && !f.shared.MayJoin.Load() {
		f.foreign = &driver.Refusal{Outcome: store.Unsettled, Err: errNotJoined}
		if f.shared.OtherUse.Load() {
			f.foreign.Outcome = store.Refused
		}
	}
}

// stillForeignLocked enqueues another look if markPause has passed.
func (f *fitness) stillForeignLocked() {
	if now := time.Now(); f.shared.Taking.Load() && f.peer.PipeLocked() != nil && now.After(f.lookAt) {
		f.lookAt = now.Add(markPause)
		f.lookLocked()
	}
}

// joins says what may become of the server if it belongs to nobody.
func (f *fitness) joins() membership.Joining {
	switch {
	case f.isAlone:
		return membership.Alone
	case f.shared.MayJoin.Load():
		return membership.MayJoin
	}
	return membership.MayNot
}

// usesAlone reports whether a node is all that clients with the list have, or had before the list
// that replaces it.
func usesAlone(l membership.List, node, nodes int) bool {
	return nodes == 1 || l.Sets[0].Size() == 1 && l.Sets[0].Has(node)
}

// Omit records that the mark names another membership: the node may have been down while that was
// replaced by ours.
func (n *Node) Omit() {
	n.Mu.Lock()
	n.omitted = true
	n.Mu.Unlock()
}

// AskList has the mark checked, and until then counts its list as unknown.
func (n *Node) AskList() {
	n.Mu.Lock()
	n.fingerprint = ""
	n.Mu.Unlock()
	n.Look(false)
}

// List returns the fingerprints of the membership that the mark names, and of the one before.
func (n *Node) List() (print, before string) {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	return n.fingerprint, n.before
}

// Adopt makes the node join our membership if it missed the replacement of its own. replaced counts the
// nodes that record the replacement of a membership by ours.
func (n *Node) Adopt(replaced map[string]int) {
	l := n.Shared.Membership
	n.Mu.Lock()
	print := n.fingerprint
	before, next, joint := strings.Cut(print, ">")
	left := n.omitted && n.PipeLocked() != nil && before != nodemark.Unknown && replaced[before] >= quorum.Majority(n.Shared.Size) && (!joint || next == l.Fingerprint)
	n.omitted = n.omitted && !left
	n.Mu.Unlock()
	if left {
		n.Log.Info("node missed the replacement of its membership and joins the new one", "list", l.Text)
		c := membership.SetCommand(l.Fingerprint, l.Text, l.Fingerprint, print, before)
		n.Enqueue(Call{Command: c, Timeout: n.Shared.Config.ConnectTimeout, To: Nobody{}}, false)
	}
}
