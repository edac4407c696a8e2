package quorum

import (
	"math"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/validity"
)

// Attempt is one attempt to acquire one lock for one owner. It is not reused.
//
// The attempt is won when a majority of nodes has granted the lock and stands at the
// same token, and validity remains. The token is the largest answer of a majority. Nodes
// of the majority that answered less are asked to confirm it. A node can confirm only
// while this owner still has the lock there. The confirmed majorities of two grants
// share a node; its later answer is larger than the earlier token, and the later token is
// no smaller than that answer. So tokens increase whatever the clocks do.
//
// Once the attempt is lost, every node that granted or may have granted is told to
// release, at once or when its answer arrives. A node that never received the message or
// refused needs nothing.
//
// In a semaphore, grants must also have the same slots; see agree.
//
// An attempt that waits is not lost while others have the lock: see waitState.
type Attempt struct {
	Config
	ttl       time.Duration
	start     clock.Instant
	from      clock.Instant // once won: what validity counts from
	confirmBy clock.Instant // node timeout of the second round; 0 before it
	moveBy    clock.Instant // node timeout of the round that asks for the slots; 0 before it
	verdict   Verdict
	cancelled bool
	token     uint64
	slots     string // agreed on with a majority, or to be; empty before it, and if there are none
	other     string // other slots that a node granted, to wish for next time
	reserved  uint64 // tokens below it that belong to the grant as well
	nodes     [MaxNodes]candidate
	waiting   waitState
}

type candidate struct {
	phase    Phase
	late     bool          // past its node timeout: its answer still counts, but is not waited for
	token    uint64        // where its counter stands, if Held
	reserved uint64        // tokens below token that belong to the grant as well
	asked    uint64        // the token it was asked to confirm, if larger than at
	slots    string        // of its grant, if Held
	move     move          // whether it was asked for the slots that the others have
	from     clock.Instant // departure of the request that it granted, if Held
	wait     nodeWait      // where the attempt waits
}

// canConfirm reports whether the token can be confirmed there.
func (n *candidate) canConfirm() bool { return n.phase == Held || !confirmOwned }

// NewAttempt begins an attempt whose requests leave after start. The driver
// sends Acquire to every node.
func NewAttempt(c Config, ttl time.Duration, start clock.Instant) (a Attempt) {
	a.Begin(c, ttl, start)
	return a
}

// Begin is NewAttempt in place: an attempt is large.
func (a *Attempt) Begin(c Config, ttl time.Duration, start clock.Instant) {
	*a = Attempt{Config: c, ttl: ttl, start: start}
}

// Step applies one event and appends to out the messages to send.
func (a *Attempt) Step(e Event, now clock.Instant, out []Send) []Send {
	switch e.Kind {
	case Tick:
		a.timeOut(now)
	case Cancel:
		a.cancelled = a.cancelled || a.verdict == Open
	default:
		if a.waiting.waits {
			a.takeEventWaiting(e, now)
		} else {
			a.takeReply(e)
		}
	}
	if a.verdict == Open {
		out = a.decide(now, out)
		switch {
		case !a.waiting.waits:
		case a.verdict == Open:
			out = a.stepWaiting(now, out)
		case a.verdict == Won: // only now: what is sent later may come after the release
			out = a.fill(now, out)
		}
	}
	if a.verdict == Lost && cleanUpLost {
		out = a.cleanUp(out)
	}
	return out
}

// takeReply applies one node's answer.
func (a *Attempt) takeReply(e Event) {
	n := &a.nodes[e.Node]
	if e.Op == Acquire && (n.phase == Asked || n.move == moveAsked && n.phase == Held) {
		if n.move == moveAsked {
			n.move, n.late = moveAnswered, false
		}
		switch e.Kind {
		case Yes:
			n.phase, n.late, n.token, n.reserved, n.slots, n.from = Held, false, e.Token, e.Reserved, e.Slots, a.start
		case No, Absent:
			n.phase = Refused
		case Unsent:
			if n.phase == Asked {
				n.phase = Missing
			}
		case Unknown:
			if n.phase = Doubtful; !doubtUnknown {
				n.phase = Refused
			}
		}
	}
	if e.Op == Confirm && n.canConfirm() {
		a.confirmed(n, e)
	}
}

// confirmed applies the answer to a confirmation.
func (a *Attempt) confirmed(n *candidate, e Event) {
	switch e.Kind {
	case Yes:
		n.token, n.late = max(n.token, e.Token), false
	case No, Absent: // this owner no longer has the lock there
		n.phase = Refused
	default: // the node may have the lock but cannot confirm: it is released
		n.phase = Doubtful
	}
}

// timeOut stops waiting for nodes past their node timeout.
func (a *Attempt) timeOut(now clock.Instant) {
	for i := range a.Nodes {
		n := &a.nodes[i]
		switch {
		case n.phase == Asked && !a.waiting.waits && now >= a.start.Add(a.NodeTimeout):
			n.late = true
		case n.phase == Held && n.asked > n.token && now >= a.confirmBy:
			n.late = true
			n.wait.nextAt = now
		case n.move == moveAsked && !a.waiting.waits && now >= a.moveBy:
			n.late = true
		}
	}
}

// decide settles whether the attempt is won or lost, or asks for confirmations.
func (a *Attempt) decide(now clock.Instant, out []Send) []Send {
	var held, hoped, confirmed Set
	for i := range a.Nodes {
		switch n := &a.nodes[i]; {
		case a.holds(n, now) && !n.late:
			held = held.with(i)
		case n.phase == Asked && !n.late && !(a.waiting.waits && now >= n.wait.sentAt.Add(a.NodeTimeout)):
			hoped = hoped.with(i)
		}
	}
	same, hopedSame := agree(a, held, hoped, now)
	switch {
	case a.cancelled, !a.waiting.waits && (!a.HasQuorum(same|hopedSame|hoped) || now >= validity.Until(a.start, a.ttl)):
		a.verdict = Lost
		return out
	case a.waiting.waits: // stepWaiting sends it
	default:
		out = moveTo(a, hopedSame, now, out)
	}
	if held = same; !a.HasQuorum(held) {
		return out
	}
	token := largestToken(a, held)
	for i := range a.Nodes {
		if n := &a.nodes[i]; n.canConfirm() && !n.late && n.token == token && (held.Has(i) || !confirmOwned) {
			confirmed = confirmed.with(i)
		}
	}
	if a.HasQuorum(confirmed) || !confirmToken {
		a.verdict, a.token, a.from = Won, token, a.validFrom(held, confirmed)
		a.reserved = fewestReserved(a, held, confirmed)
		return out
	}
	if a.confirmBy == 0 || a.waiting.waits && now >= a.confirmBy {
		a.confirmBy = now.Add(a.NodeTimeout)
	}
	for i := range a.Nodes {
		if n := &a.nodes[i]; (a.holds(n, now) && n.slots == a.slots || !confirmOwned) && max(n.token, n.asked) < token {
			n.asked = token
			out = append(out, Send{Node: i, Op: Confirm, Token: token, Slots: a.slots})
		}
	}
	return out
}

// holds reports whether the node certainly has the lock for this owner at now.
func (a *Attempt) holds(n *candidate, now clock.Instant) bool {
	return n.phase == Held && (!placeInTime || now < validity.Until(n.from, a.ttl))
}

// aboutAsLate is the fraction of the TTL by which departures count as simultaneous.
const aboutAsLate = 16

// validFrom returns the departure from which validity counts: that of the latest
// requests that a majority granted, or an earlier one that is about as late, so that no
// validity is lost with one of the nodes. Without waiting all requests leave together.
func (a *Attempt) validFrom(held, confirmed Set) clock.Instant {
	if !a.waiting.waits {
		return a.start
	}
	if !a.HasQuorum(confirmed) { // only where confirming is switched off
		confirmed = held
	}
	var since clock.Instant
	for i := range a.Nodes {
		if !confirmed.Has(i) {
			continue
		}
		var enough Set
		for j := range a.Nodes {
			if confirmed.Has(j) && a.nodes[j].from >= a.nodes[i].from {
				enough = enough.with(j)
			}
		}
		if a.HasQuorum(enough) {
			since = max(since, a.nodes[i].from)
		}
	}
	latest := since
	for i := range a.Nodes {
		if from := a.nodes[i].from; confirmed.Has(i) && from >= latest.Add(-a.ttl/aboutAsLate) {
			since = min(since, from)
		}
	}
	return since
}

// largestToken is the largest answer of the majority with the smallest answers, so
// that no node is asked to confirm needlessly. Nodes outside that majority do not
// matter. Of a joint configuration it is the larger of the two.
func largestToken(a *Attempt, held Set) (token uint64) {
	for _, set := range a.JointSets() {
		var answers [MaxNodes]uint64
		n := 0
		for i := range a.Nodes {
			if (held & set).Has(i) {
				answers[n] = a.nodes[i].token
				n++
			}
		}
		slices.Sort(answers[:n])
		token = max(token, answers[Majority(set.Size())-1])
	}
	return token
}

// fewestReserved returns how many tokens below the grant's own every confirming node has
// reserved. On each of these nodes they are above everything it granted before.
func fewestReserved(a *Attempt, held, confirmed Set) uint64 {
	if !a.HasQuorum(confirmed) { // only where confirming is switched off
		confirmed = held
	}
	least := uint64(math.MaxUint64)
	for i := range a.Nodes {
		if confirmed.Has(i) {
			least = min(least, a.nodes[i].reserved)
		}
	}
	return least
}

// Behind returns the nodes that have granted the lock to an attempt that is won, and whose
// counters are behind its token. To raise them is a late confirmation, which hides a missing
// one in most cases.
func Behind(a *Attempt) (s Set) {
	if !confirmToken {
		return 0
	}
	for i := range a.Nodes {
		if n := &a.nodes[i]; a.verdict == Won && n.phase == Held && max(n.token, n.asked) < a.token {
			s = s.with(i)
		}
	}
	return s
}

// cleanUp releases on every node that has granted the lock or may have. It leaves a
// tombstone where the acquire may still be on its way.
func (a *Attempt) cleanUp(out []Send) []Send {
	for i := range a.Nodes {
		n := &a.nodes[i]
		if n.phase == Relinquish || n.phase != Held && n.phase != Doubtful && !(a.waiting.waits && n.wait.mayHold()) {
			continue
		}
		again := n.wait.uncertain || n.wait.sentAt != 0 || n.move == moveAsked
		out = append(out, Send{
			Node: i, Op: Release, Tomb: (n.phase == Doubtful || again) && buryDoubtful, AlwaysTomb: again && buryDoubtful && buryRepeated,
			GivesWay: a.waiting.gaveWay && !a.waiting.toNext && !a.waiting.blocked, ToSenior: a.waiting.toSenior,
		})
		n.phase = Relinquish
	}
	return out
}

// Verdict returns the outcome, or Open.
func (a *Attempt) Verdict() Verdict { return a.verdict }

// Token returns the token of the grant, once won.
func (a *Attempt) Token() uint64 { return a.token }

// Slots returns the slots of the grant, once won. They are empty if the lock is no
// semaphore.
func (a *Attempt) Slots() string { return a.slots }

// Reserved returns how many tokens below Token belong to the grant as well, once won.
func (a *Attempt) Reserved() uint64 { return a.reserved }

// From returns the instant from which validity counts, once won: a departure of the
// granted requests.
func (a *Attempt) From() clock.Instant { return a.from }

// AskedAt returns the departure of the request that node answers, or answered last.
func (a *Attempt) AskedAt(node int) clock.Instant {
	if under := a.nodes[node].wait.sentAt; under != 0 {
		return under
	}
	return a.start
}

// Late reports whether the node missed its node timeout.
func (a *Attempt) Late(node int) bool { return a.nodes[node].late }

// Agreed reports whether the node granted the lock, even if it was released since.
func (a *Attempt) Agreed(node int) bool { return a.nodes[node].token > 0 }

// Next returns when a Tick can change something; false if none can.
func (a *Attempt) Next() (clock.Instant, bool) {
	if a.verdict != Open {
		return 0, false
	}
	if a.waiting.waits {
		return a.nextWaiting()
	}
	next := validity.Until(a.start, a.ttl)
	for _, n := range a.nodes[:a.Nodes] {
		switch {
		case n.late:
		case n.phase == Asked:
			next = min(next, a.start.Add(a.NodeTimeout))
		case n.phase == Held && n.asked > n.token:
			next = min(next, a.confirmBy)
		case n.move == moveAsked:
			next = min(next, a.moveBy)
		}
	}
	return next, true
}
