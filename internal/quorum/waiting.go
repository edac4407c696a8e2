package quorum

import (
	"math"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/validity"
)

// line is what an attempt that waits knows besides. It stays open while others
// have the lock, with a place in line at every node; a place is the acquire
// itself, kept by the node until it has something to grant. Granting late is the
// same to this machine as a message that was late, so all that makes tokens rise
// and leases exclude each other is what it is without a line. What is new:
//
//   - The acquire is sent again and again, to keep the place. Each grant counts
//     from when the request left that it answers, node by node; one whose time is
//     over counts no more.
//   - Several who wait may get a part of the nodes each. Whoever sees somebody
//     senior in the way gives way: this attempt is lost, like any other, what it
//     has goes to that one, and the driver begins another of the same rank. To
//     give up nodes one by one under the same owner would let what comes in late
//     take away what was granted since.
//   - While somebody else has a majority, what can be had is what the holder has
//     lost, by a restart, and is to be healed: it is given up in the same way, and
//     then only stood in line for.
type waitState struct {
	waits bool
	// While some nodes have the lock for us, and not enough: when to look again
	// who has the others, and the pause after that.
	lookAt clock.Instant
	look   time.Duration
	viewed bool // what there was to see has been acted on
	again  bool // an acquire was sent a second time
	// It is lost because others come first, and is to be followed by another.
	gaveWay  bool
	toSenior bool // to one who has no majority either
}

// place is one node's part of it.
type nodeWait struct {
	under   clock.Instant // when the acquire under way left; 0: none is
	slow    bool          // it is past its node timeout
	again   clock.Instant // when to ask the next time
	poll    bool          // at once, when the one under way is answered
	tried   bool          // a request has reached it, or may have
	doubted bool          // of one it is not known what became of it
	shun    bool          // it has granted the lock, and that does not count
	holder  string        // who has the lock there,
	came    clock.Instant // since then at least,
	until   clock.Instant // until then unless it is renewed,
	senior  bool          // and comes before us
	awaited bool          // and may be about to get the others, too
	stood   bool          // the acquire under way does not take a free lock
	free    bool          // nobody has it, and we stand in line
}

const (
	// firstLook is how long the other nodes' grants are waited for when some have
	// come in: they are sent at about the same time.
	firstLook = 10 * time.Millisecond
	// Somebody with a majority is left in peace by then: until then what we have of
	// the other nodes is most likely to be ours next, as when a release has reached
	// one of them late.
	patience = 16 * firstLook
	// Who has some nodes, and no majority after this time, is probably not about to
	// get one: it has died, or is a stranger. Others may then try; and give way once
	// more if that leads to nothing, since it may as well have been held up.
	progress = 25 * firstLook
)

// NewWait begins an attempt that waits in line. The driver sends Acquire to
// every node, with Stand if stand, and what Step says then. stand is for one that
// follows one that gave way.
func NewWait(c Config, ttl time.Duration, start clock.Instant, stand bool) (a Attempt) {
	a.BeginWait(c, ttl, start, stand)
	return a
}

// BeginWait makes a what NewWait returns, where it is.
func (a *Attempt) BeginWait(c Config, ttl time.Duration, start clock.Instant, stand bool) {
	a.Begin(c, ttl, start)
	a.waiting.waits, a.waiting.look = true, firstLook
	for i := range a.Nodes {
		a.nodes[i].wait.under, a.nodes[i].wait.stood = start, stand
	}
}

// mayHold says whether the node may have something of ours.
func (p *nodeWait) mayHold() bool { return p.tried || p.under != 0 }

// Repeated says whether an acquire may still be on its way when the lease is
// released, other than those that the first release follows on their heels.
func (a *Attempt) Repeated() bool {
	for i := range a.Nodes {
		if p := &a.nodes[i].wait; buryRepeated && (p.doubted || p.under != 0 && a.waiting.again) {
			return true
		}
	}
	return false
}

// hearInLine takes in what one node says.
func (a *Attempt) takeEventWaiting(e Event, now clock.Instant) {
	n := &a.nodes[e.Node]
	p := &n.wait
	switch {
	case n.phase == Relinquish:
	case e.Kind == Discounted && n.phase != Held:
		n.phase, p.shun, p.tried = Doubtful, true, true
		if e.From == 0 { // an answer
			p.under, p.slow, p.again = 0, false, p.under.Add(validity.RenewAfter(a.ttl))
		}
	case e.Kind == PushGranted:
		n.takeGrant(e, e.From)
		a.waiting.viewed = true // what others said may be from before the hand-off
	case (e.Kind == PushLost || e.Kind == PushFree) && p.under != 0:
		p.poll = true // it may have overtaken the answer to the request it is about
	case e.Kind == PushLost:
		p.again = now
	case e.Kind == PushFree:
		for i := range a.Nodes { // whoever had it is about to release the others, too
			if q := &a.nodes[i].wait; q.holder == p.holder {
				q.senior = false
			}
		}
		p.free, p.holder, p.until = true, "", 0
	case e.Op == Acquire:
		a.takeAcquireReply(n, e, now)
	case e.Op == Confirm && n.canConfirm():
		if a.confirmed(n, e); n.phase != Held {
			p.again = now.Add(e.RetryAfter)
		}
	}
}

// GaveWay says whether it was lost because others come first: the driver is to
// begin another one, under a new owner of the same rank.
func (a *Attempt) GaveWay() bool { return a.waiting.gaveWay }

// placed takes in the answer to the acquire under way.
func (a *Attempt) takeAcquireReply(n *candidate, e Event, now clock.Instant) {
	p := &n.wait
	sent := p.under
	p.under, p.slow, p.free, p.shun, p.again = 0, false, false, false, sent.Add(validity.RenewAfter(a.ttl))
	if e.Kind != Unsent {
		p.tried = true
	}
	switch e.Kind {
	case Yes:
		n.takeGrant(e, sent)
	case No, Absent:
		// What it has granted since is for this very request, and was told on
		// another way, which may be the shorter one.
		if n.phase != Held || n.from < sent {
			if p.holder != e.Holder || n.phase != Refused {
				p.came = now
			}
			if e.HolderSince != 0 {
				p.came = min(p.came, e.HolderSince)
			}
			n.phase, p.holder, p.senior, p.until = Refused, e.Holder, e.Senior, now.Add(e.ExpiresIn)
			if e.ExpiresIn < 0 {
				p.until = math.MaxInt64
			}
			p.free = e.Kind == Absent && p.stood
			p.again = min(p.again, now.Add(e.RetryAfter))
		}
	case Unsent:
		if n.phase != Held {
			n.phase = Missing
		}
		p.again = min(p.again, now.Add(e.RetryAfter))
	default:
		if p.doubted = true; n.phase != Held {
			n.phase = Doubtful
		}
		p.again = min(p.again, now.Add(e.RetryAfter))
	}
	if p.poll {
		p.poll, p.again = false, now
	}
}

// granted takes in a grant of the request that left at from. One that is told again
// comes without the tokens that were reserved with it.
func (n *candidate) takeGrant(e Event, from clock.Instant) {
	if n.phase != Held {
		n.phase, n.token, n.reserved, n.asked, n.from, n.late = Held, e.Token, e.Reserved, 0, from, false
		return
	}
	if e.Token > n.token || e.Token == n.token && e.Reserved > n.reserved {
		n.token, n.reserved = e.Token, e.Reserved
	}
	n.from, n.late = max(n.from, from), false
}

// wait says what a waiting attempt does next.
func (a *Attempt) stepWaiting(now clock.Instant, out []Send) []Send {
	l := &a.waiting
	leader := a.leader(now)
	part, pending, senior, stale, shunned := false, false, false, false, false
	for i := range a.Nodes {
		n := &a.nodes[i]
		p := &n.wait
		p.slow = p.under != 0 && now >= p.under.Add(a.NodeTimeout)
		part = part || a.holds(n, now) || p.shun
		shunned = shunned || p.shun
		pending = pending || p.under != 0 && !p.slow
		before := n.phase == Refused && p.senior && now < p.until && a.Nodes > 1
		p.awaited = before && now < p.came.Add(progress)
		senior, stale = senior || p.awaited, stale || before
	}
	switch {
	case !part:
		l.lookAt, l.look = 0, firstLook
	case l.lookAt == 0:
		l.lookAt = now.Add(l.look)
	}
	look := l.lookAt != 0 && now >= l.lookAt
	seen := part && !pending && !l.viewed
	longest := validity.RenewAfter(a.ttl) // the longest pause between two looks
	first := leader == "" && (senior || stale && l.look >= min(progress, longest))
	if giveWay && (seen && (first || leader != "" && l.look >= min(patience, longest)) || look && shunned) {
		a.verdict, l.gaveWay, l.toSenior = Lost, true, leader == ""
		return out
	}
	l.viewed = l.viewed || seen
	if look {
		l.look = min(2*l.look, longest)
		l.lookAt = now.Add(l.look)
	}
	for i := range a.Nodes {
		n := &a.nodes[i]
		p := &n.wait
		due := now >= p.again || look && !a.holds(n, now) || p.free && !pending && leader == "" && !senior
		if p.under == 0 && due {
			p.stood = leader != "" || senior
			out = append(out, Send{Node: i, Op: Acquire, Again: p.tried, QueueOnly: p.stood})
			l.again = l.again || p.tried
			p.under, l.viewed = now, false
		}
	}
	return out
}

// fill asks for the lock where nobody has it, once a majority has it for us: the
// more nodes have it, the more may be lost.
func (a *Attempt) fill(now clock.Instant, out []Send) []Send {
	for i := range a.Nodes {
		if p := &a.nodes[i].wait; p.free && p.under == 0 {
			out = append(out, Send{Node: i, Op: Acquire, Again: p.tried})
			a.waiting.again = true
			p.under, p.free, p.stood = now, false, false
		}
	}
	return out
}

// leader is who has a majority, as far as its nodes have said: none of a single
// node, which its holder can not lose to anybody.
func (a *Attempt) leader(now clock.Instant) string {
	if a.Nodes == 1 {
		return ""
	}
	for i := range a.Nodes {
		holder := a.nodes[i].wait.holder
		if holder == "" {
			continue
		}
		var has Set
		for j := range a.Nodes {
			if n := &a.nodes[j]; n.phase == Refused && n.wait.holder == holder && now < n.wait.until {
				has = has.with(j)
			}
		}
		if a.HasQuorum(has) {
			return holder
		}
	}
	return ""
}

// nextInLine is when a Tick can change something.
func (a *Attempt) nextWaiting() (next clock.Instant, ok bool) {
	first := func(t clock.Instant) {
		if !ok || t < next {
			next, ok = t, true
		}
	}
	if a.waiting.lookAt != 0 {
		first(a.waiting.lookAt)
	}
	for i := range a.Nodes {
		n := &a.nodes[i]
		switch p := &n.wait; {
		case p.under != 0 && !p.slow:
			first(p.under.Add(a.NodeTimeout))
		case p.under == 0:
			first(p.again)
		}
		if n.phase == Held && n.asked > n.token && !n.late {
			first(a.confirmBy)
		}
		if n.wait.awaited {
			first(n.wait.came.Add(progress))
		}
	}
	return next, ok
}
