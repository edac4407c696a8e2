package quorum

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/validity"
)

// Attempt is one attempt to acquire one lock for one owner. Begin makes another one of it.
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
	grants
	progress
	waiting waitState
}

// progress is how far an attempt has come.
type progress struct {
	start     clock.Instant
	confirmBy clock.Instant // node timeout of the second round; 0 before it
	moveBy    clock.Instant // node timeout of the round that asks for the slots; 0 before it
	asked     uint64        // the largest token that a node was asked to confirm
	verdict   Verdict
	cancelled bool
}

// NewAttempt begins an attempt whose requests leave after start. The driver
// sends Acquire to every node.
func NewAttempt(c Config, ttl time.Duration, start clock.Instant) (a Attempt) {
	a.Begin(c, ttl, start)
	return a
}

// Begin makes a a new attempt, in the same memory. It clears only the nodes that the old attempt
// had and the new one has: all others are zero. To clear the whole of a took 2 percent of the CPU
// time of a client that locks with 256 goroutines.
func (a *Attempt) Begin(c Config, ttl time.Duration, start clock.Instant) {
	clear(a.nodes[:max(a.Nodes, c.Nodes)])
	a.Config, a.ttl, a.agreed = c, ttl, agreed{}
	a.progress, a.waiting = progress{start: start}, waitState{}
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
			n.phase, n.late, n.token, n.slots, n.from = Held, false, e.Token, e.Slots, a.start
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
	// A node that was asked to confirm a token will stand at it. A smaller one, which is enough once
	// a later answer is smaller, would not be the one that Inspect finds.
	token := max(a.largestToken(held), a.asked)
	for i := range a.Nodes {
		if n := &a.nodes[i]; n.canConfirm() && !n.late && n.token == token && (held.Has(i) || !confirmOwned) {
			confirmed = confirmed.with(i)
		}
	}
	if a.HasQuorum(confirmed) || !confirmToken {
		a.verdict = Won
		if !a.HasQuorum(confirmed) { // only where confirming is switched off
			confirmed = held
		}
		a.token, a.from = token, a.start // all requests left together
		if a.waiting.waits {
			a.from = a.validFrom(confirmed)
		}
		return out
	}
	if a.confirmBy == 0 || a.waiting.waits && now >= a.confirmBy {
		a.confirmBy = now.Add(a.NodeTimeout)
	}
	for i := range a.Nodes {
		if n := &a.nodes[i]; (a.holds(n, now) && n.slots == a.slots || !confirmOwned) && max(n.token, n.asked) < token {
			n.asked, a.asked = token, token
			out = append(out, Send{Node: i, Op: Confirm, Token: token, Slots: a.slots})
		}
	}
	return out
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
			Node: i, Op: Release, Tombstone: (n.phase == Doubtful || again) && buryDoubtful, AlwaysTombstone: again && buryDoubtful && buryRepeated,
			GivesWay: a.waiting.gaveWay && !a.waiting.toNext && !a.waiting.blocked, ToSenior: a.waiting.toSenior,
		})
		n.phase = Relinquish
	}
	return out
}

// Verdict returns the outcome, or Open.
func (a *Attempt) Verdict() Verdict { return a.verdict }

// AskedAt returns the departure of the request that node answers, or answered last.
func (a *Attempt) AskedAt(node int) clock.Instant {
	if under := a.nodes[node].wait.sentAt; under != 0 {
		return under
	}
	return a.start
}

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
