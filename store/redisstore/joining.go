package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
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

// A server becomes one of several when the first client that wants a lock there writes their
// membership into its mark. From then on it refuses clients that use it alone. A wrong list must not take it away from
// them, so:
//
//   - A client that only looks at locks reads the mark, and writes nothing.
//   - A client that wants a lock first looks at all servers. Servers join if a majority of the list
//     belongs to it already, or if a majority does or can, and none belongs to others or is
//     in use alone.
//   - A server that is in use alone never joins; its own script decides that. Clients that use a server
//     alone leave a note there, which outlasts their leases (useAlone.lua).
//
// A client that dies between two servers leaves one that belongs to the list beside one that can
// still join: the next client goes on from there.

// standing is how a server stands to the membership of this store.
type standing uint8

const (
	unknown standing = iota // it is not connected, or its mark cannot be read
	member                  // its mark names our membership, or one of both
	free                    // it belongs to nobody
	theirs                  // it belongs to others, or is in use alone
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
	is, by, mark := unknown, "", nodemark.New()
	if text.Kind == '$' {
		var err error
		if !text.Null {
			mark, err = nodemark.Parse(string(text.Text))
		}
		if err == nil {
			is = f.standingOf(mark)
		}
	}
	if is == free && !f.isAlone && user.Kind == '$' && !user.Null {
		is, by = theirs, string(user.Text)
	}
	f.peer.Mu.Lock()
	f.stands, f.usedBy, f.forgot = is, by, 0
	if mark.Run != nodemark.Unknown && f.server.RunID != "" && mark.Run != f.server.RunID && (mark.Durable == 0 || f.durable() != "always") {
		f.forgot = f.core.o.Clock.Now().Add(max(f.core.quarantine(), time.Duration(mark.Longest)*time.Microsecond))
	}
	f.peer.Mu.Unlock()
}

// shows returns what a look at a lock says about the server: while nobody wants a lock, nobody
// writes into its mark that it may have forgotten leases.
func (f *fitness) shows(said store.NodeOutcome) store.NodeOutcome {
	f.peer.Mu.Lock()
	forgot := f.forgot
	f.peer.Mu.Unlock()
	if q, ok := said.Err.(*script.QuarantineError); ok && q.Why == "empty" && q.Left <= time.Microsecond {
		said.ExpiresIn = f.core.quarantine()
		said.Err = &script.QuarantineError{Why: q.Why, Left: said.ExpiresIn}
	} else if left := forgot.Sub(f.core.o.Clock.Now()); forgot != 0 && left > 0 && said.Outcome == store.Absent {
		said.Outcome, said.ExpiresIn, said.Err = store.Quarantined, left, &script.QuarantineError{Why: "restarted", Left: left}
	}
	return said
}

func (f *fitness) standingOf(mark nodemark.Mark) standing {
	l := f.core.membership
	switch {
	case mark.Print == nodemark.Unknown:
		return free
	case !l.Excluded(mark.Print):
		return member
	case l.WasAlone(mark):
		return free // it was used alone, before
	}
	return theirs
}

// barLocked sets why the server may keep no lock, by how it stands to this store.
func (f *fitness) barLocked() {
	f.foreign = nil
	if f.stands == theirs && f.usedBy != "" {
		f.foreign = &driver.Refusal{Outcome: store.Refused, Err: usedAlone(f.usedBy)}
	} else if f.stands == free && !f.isAlone && !f.core.mayJoin.Load() {
		f.foreign = &driver.Refusal{Outcome: store.Unsettled, Err: errNotJoined}
		if f.core.otherUse.Load() {
			f.foreign.Outcome = store.Refused
		}
	}
}

// stillForeignLocked enqueues another look if markPause has passed.
func (f *fitness) stillForeignLocked() {
	if now := time.Now(); f.core.taking.Load() && f.peer.PipeLocked() != nil && now.After(f.lookAt) {
		f.lookAt = now.Add(markPause)
		f.lookLocked()
	}
}

// joins says what may become of the server if it belongs to nobody.
func (f *fitness) joins() membership.Joining {
	switch {
	case f.isAlone:
		return membership.Alone
	case f.core.mayJoin.Load():
		return membership.MayJoin
	}
	return membership.MayNot
}

// usesAlone reports whether a node is all that clients with the list have, or had before the list
// that replaces it.
func usesAlone(l membership.List, node, nodes int) bool {
	return nodes == 1 || l.Sets[0].Size() == 1 && l.Sets[0].Has(node)
}

// take prepares for a request that may change locks: from now on this client writes marks.
func (s *fleet) take(ctx context.Context) error {
	if s.taking.Load() || len(s.nodes) < 2 || !marksLooked {
		return nil
	}
	select {
	case s.joining <- struct{}{}:
		defer func() { <-s.joining }()
	case <-ctx.Done(): // the one that has servers join waits for answers
		return ctx.Err()
	}
	if s.taking.Load() {
		return nil
	}
	if _, certain := s.countStandings(); !certain { // each server has its say, if it answers
		if err := s.waitForStandings(ctx); err != nil {
			return err
		}
	}
	s.taking.Store(true)
	s.decideJoining()
	answers, asked := make(answered, len(s.nodes)), 0
	for _, n := range s.nodes {
		n.Mu.Lock()
		if n.PipeLocked() != nil && !n.arrives && n.foreign == nil && n.arriveFirstLocked(answers) {
			asked++
		}
		n.Mu.Unlock()
	}
	// What these servers grant before they have answered does not count, but the errors would say
	// less.
	late := time.NewTimer(s.nodeTimeout(s.longestTTL()))
	defer late.Stop()
	for done := range asked {
		if done == quorum.Majority(len(s.nodes)) {
			late.Reset(20 * time.Millisecond) // a slow server must not delay the lock
		}
		select {
		case <-answers:
		case <-late.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// answered is a driver.Receiver that counts answers.
type answered chan struct{}

func (a answered) Receive(int, int, driver.Reply) { a <- struct{}{} }

// waitForStandings waits until the servers that are not connected have been looked at or do not
// answer.
func (s *fleet) waitForStandings(ctx context.Context) error {
	p, asked := make(poll, len(s.nodes)), 0
	for _, n := range s.nodes {
		n.Mu.Lock()
		known := n.stands != unknown
		n.Mu.Unlock()
		if !known && n.put(call{command: pingCommand, timeout: s.o.ConnectTimeout, look: p}, false) == nil {
			asked++
		}
	}
	for range asked {
		select {
		case <-p:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// countStandings reports whether servers may join. It is certain if a majority of each list has joined.
func (s *fleet) countStandings() (may, certain bool) {
	var members, able, others quorum.Set
	for i, n := range s.nodes {
		n.Mu.Lock()
		switch n.stands {
		case member:
			members |= quorum.SetOf(i)
		case free:
			able |= quorum.SetOf(i)
		case theirs:
			others |= quorum.SetOf(i)
		}
		n.Mu.Unlock()
	}
	may, certain = true, true
	cfg := s.quorumConfig()
	for _, list := range cfg.JointSets() {
		need := quorum.Majority(list.Size())
		if (members & list).Size() >= need {
			continue
		}
		certain = false
		may = may && others&list == 0 && ((members|able)&list).Size() >= need
	}
	return may, certain
}

// decideJoining decides anew whether servers may join, and has them looked at that may now.
func (s *fleet) decideJoining() {
	may, _ := s.countStandings()
	s.mayJoin.Store(may)
	s.otherUse.Store(slices.ContainsFunc(s.nodes, func(n *node) bool {
		n.Mu.Lock()
		defer n.Mu.Unlock()
		return n.stands == theirs
	}))
	for _, n := range s.nodes {
		n.Mu.Lock()
		barred := n.foreign != nil
		n.barLocked()
		if barred && n.foreign == nil && s.taking.Load() && n.PipeLocked() != nil {
			n.lookLocked()
		}
		n.Mu.Unlock()
	}
}

// arriveFirstLocked has the mark checked before anything that waits to be sent. It returns false
// if the client cannot check it.
func (n *node) arriveFirstLocked(to driver.Receiver) bool {
	c := n.arrivalLocked(true)
	if c == nil {
		return false
	}
	n.arrives = true
	n.s.enqueueLocked(&n.Peer, call{command: c, timeout: n.s.o.ConnectTimeout, to: to})
	n.toFrontLocked(1)
	return true
}

// toFrontLocked moves the last of the calls that wait to be sent to the front.
func (n *node) toFrontLocked(last int) {
	for range n.Waiting.Len() - last {
		c, _ := n.Waiting.Pop()
		n.Waiting.Push(c)
	}
}

// refused handles the reply of the arrive script that it has changed nothing. What was sent behind an
// arrival over a connection in use may have been executed on a server that is not to be used, so
// its replies must not count.
func (s *fleet) refused(n *node, said resp.Value, isNew bool) {
	n.Mu.Lock()
	was, w := n.foreign, n.PipeLocked()
	n.usedBy, n.unmarked = "", nil
	switch said.List[0].Num {
	case 4:
		n.stands = theirs
		n.fingerprint, n.before = string(said.List[2].Text), string(said.List[3].Text)
	case 6:
		n.stands, n.usedBy = theirs, string(said.List[1].Text)
	case 7:
		n.stands = free
	}
	n.barLocked()
	why := n.foreign
	n.Mu.Unlock()
	if why != nil && (was == nil || was.Err.Error() != why.Err.Error()) {
		n.log.Warn("node cannot be used", "err", why.Err)
	}
	if why != nil && was == nil && !isNew && w != nil {
		w.Abandon(why.Err)
	}
}

// soloUse is the note that this client leaves on a server which it uses alone. It is guarded by
// the mutex of the node's peer.
type soloUse struct {
	until   time.Time     // before then, the note outlasts every lease of this client
	longest time.Duration // that the note allows for
	denied  bool          // the user may not leave one
}

// noteUseLocked enqueues the note before a call that keeps a lock, if it is due.
func (n *node) noteUseLocked() {
	if !n.isSingle() || n.solo.denied || n.s.topology.keys() != nil {
		return
	}
	now, longest := time.Now(), min(max(n.s.longestTTL(), store.MinTTL), math.MaxInt64/2)
	if longest <= n.solo.longest && now.Add(longest).Before(n.solo.until) {
		return
	}
	n.solo.until, n.solo.longest = now.Add(2*longest), longest
	n.s.enqueueLocked(&n.Peer, call{command: membership.UseAloneCommand(2*longest, n.s.user), timeout: n.s.o.ConnectTimeout, to: nobody{}})
}

// useNoted handles the reply to the note. If the server belongs to others by now, nothing counts
// that was sent after it.
func (n *node) useNoted(r script.Reply) {
	n.Mu.Lock()
	w, other := n.PipeLocked(), false
	switch list := r.Value.List; {
	case script.IsDenied(r.Err):
		n.solo.denied = true
		n.log.Warn("cannot note that this client uses the server alone, so that clients with another list may take the server away", "err", r.Err)
	case r.Outcome != store.Granted || len(list) == 0:
		n.solo.until = time.Time{}
	case list[0].Num != 1:
		n.solo.until, other = time.Time{}, true
	}
	n.Mu.Unlock()
	if other && w != nil {
		w.Abandon(errMembershipChanged)
	}
}

// longestTTL is the longest TTL that this client has asked for, or may ask for.
func (s *core) longestTTL() time.Duration { return time.Duration(s.ttl.Load()) }

// longestLease is how long a lease of any client may last from now on, as far as this one knows. It
// leaves room for what is added to it.
func (s *core) longestLease() time.Duration {
	return min(max(s.quarantine(), s.longestTTL()), math.MaxInt64/4)
}

// noteTTL remembers the longest TTL that was asked for.
func (s *core) noteTTL(ttl time.Duration) {
	for {
		old := s.ttl.Load()
		if int64(ttl) <= old || s.ttl.CompareAndSwap(old, int64(ttl)) {
			return
		}
	}
}

// userOf describes this process to operators.
func userOf(c clock.Clock) string {
	if _, ok := c.(clock.Simulated); ok {
		return "a simulated client"
	}
	host, _ := os.Hostname() // empty where unknown
	return fmt.Sprintf("%s, process %d", host, os.Getpid())
}
