package quorum

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
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
//     senior in the way gives what it has to that one. A grant that was given up
//     never counts again, whatever comes in late: only one with a larger token.
type line struct {
	waits bool
	// While some nodes have the lock for us, and not enough: when to look again
	// who has the others, and the pause after that.
	lookAt clock.Instant
	look   time.Duration
	viewed bool // what there was to see has been acted on
	again  bool // an acquire was sent a second time
}

// place is one node's part of it.
type place struct {
	under   clock.Instant // when the acquire under way left; 0: none is
	slow    bool          // it is past its node timeout
	again   clock.Instant // when to ask the next time
	poll    bool          // at once, when the one under way is answered
	tried   bool          // a request has reached it, or may have
	doubted bool          // of one it is not known what became of it
	senior  bool          // whoever has the lock there comes before us
	given   uint64        // grants up to this token were given up
}

const (
	// A place is refreshed this many times in its life.
	refreshes = 3
	// firstLook is how long the other nodes' grants are waited for when some have
	// come in: they are sent at about the same time.
	firstLook = 2 * time.Millisecond
)

// NewWait begins an attempt that waits in line. The driver sends Acquire to
// every node, and what Step says then.
func NewWait(c Config, ttl time.Duration, start clock.Instant) Attempt {
	a := NewAttempt(c, ttl, start)
	a.line.waits, a.line.look = true, firstLook
	for i := range a.Nodes {
		a.nodes[i].place.under = start
	}
	return a
}

// left says whether the node may have something of ours.
func (p *place) left() bool { return p.tried || p.under != 0 }

// Repeated says whether an acquire may still be on its way when the lease is
// released, other than those that the first release follows on their heels.
func (a *Attempt) Repeated() bool {
	for i := range a.Nodes {
		if p := &a.nodes[i].place; p.doubted || p.under != 0 && a.line.again {
			return true
		}
	}
	return false
}

// hearInLine takes in what one node says.
func (a *Attempt) hearInLine(e Event, now clock.Instant) {
	n := &a.nodes[e.Node]
	p := &n.place
	switch {
	case n.phase == Relinquish:
	case e.Kind == Handed:
		n.granted(e.Token, e.From)
	case e.Kind == Poll && p.under != 0:
		p.poll = true
	case e.Kind == Poll:
		p.again = now
	case e.Op == Acquire:
		a.placed(n, e, now)
	case e.Op == Confirm && n.counts():
		if a.confirmed(n, e); n.phase != Held {
			p.again = now.Add(e.Pause)
		}
	case e.Op == Yield && n.phase == Yielding:
		p.again = now
		switch e.Kind {
		case Yes, No:
			n.phase = Refused
		case Absent, Unsent: // whoever it was for does not wait there: it is still ours
			n.phase, p.given = Held, n.at-1
		default:
			n.phase, p.doubted = Doubtful, true
			p.again = now.Add(e.Pause)
		}
	}
}

// placed takes in the answer to the acquire under way.
func (a *Attempt) placed(n *candidate, e Event, now clock.Instant) {
	p := &n.place
	sent := p.under
	p.under, p.slow, p.again = 0, false, sent.Add(a.ttl/refreshes)
	if e.Kind != Unsent {
		p.tried = true
	}
	switch e.Kind {
	case Yes:
		n.granted(e.Token, sent)
	case No, Absent:
		// What it has granted since is for this very request, and was told on
		// another way, which may be the shorter one.
		if n.phase != Held || n.from < sent {
			n.phase, p.senior = Refused, e.Senior
			p.again = min(p.again, now.Add(e.Pause))
		}
	case Unsent:
		if n.phase != Held {
			n.phase = Missing
		}
		p.again = min(p.again, now.Add(e.Pause))
	default:
		if p.doubted = true; n.phase != Held {
			n.phase = Doubtful
		}
		p.again = min(p.again, now.Add(e.Pause))
	}
	if p.poll {
		p.poll, p.again = false, now
	}
}

// granted takes in a grant of the request that left at from.
func (n *candidate) granted(token uint64, from clock.Instant) {
	switch {
	case token <= n.place.given && givenIsGiven:
	case n.phase == Held:
		n.at, n.from, n.late = max(n.at, token), max(n.from, from), false
	default:
		n.phase, n.at, n.asked, n.from, n.late = Held, token, 0, from, false
	}
}

// wait says what a waiting attempt does next.
func (a *Attempt) wait(now clock.Instant, out []Send) []Send {
	l := &a.line
	part, pending, senior := false, false, false
	for i := range a.Nodes {
		n := &a.nodes[i]
		p := &n.place
		p.slow = p.under != 0 && now >= p.under.Add(a.NodeTimeout)
		part = part || a.holds(n, now)
		pending = pending || p.under != 0 && !p.slow
		senior = senior || n.phase == Refused && p.senior
	}
	switch {
	case !part:
		l.lookAt, l.look = 0, firstLook
	case l.lookAt == 0:
		l.lookAt = now.Add(l.look)
	}
	if part && !pending && !l.viewed {
		l.viewed = true
		if senior {
			out = a.yield(now, out)
		}
	}
	look := l.lookAt != 0 && now >= l.lookAt
	if look {
		l.look = min(2*l.look, a.ttl/refreshes)
		l.lookAt = now.Add(l.look)
	}
	for i := range a.Nodes {
		n := &a.nodes[i]
		p := &n.place
		due := now >= p.again || look && !a.holds(n, now)
		if p.under == 0 && due && n.phase != Yielding {
			out = append(out, Send{Node: i, Op: Acquire, Again: p.tried})
			l.again = l.again || p.tried
			p.under, l.viewed = now, false
		}
	}
	return out
}

// yield gives what we have to whoever comes before us.
func (a *Attempt) yield(now clock.Instant, out []Send) []Send {
	for i := range a.Nodes {
		if n := &a.nodes[i]; a.holds(n, now) {
			n.phase, n.place.given = Yielding, n.at
			out = append(out, Send{Node: i, Op: Yield, Token: n.at})
		}
	}
	return out
}

// nextInLine is when a Tick can change something.
func (a *Attempt) nextInLine() (next clock.Instant, ok bool) {
	first := func(t clock.Instant) {
		if !ok || t < next {
			next, ok = t, true
		}
	}
	if a.line.lookAt != 0 {
		first(a.line.lookAt)
	}
	for i := range a.Nodes {
		n := &a.nodes[i]
		switch p := &n.place; {
		case p.under != 0 && !p.slow:
			first(p.under.Add(a.NodeTimeout))
		case p.under == 0 && n.phase != Yielding:
			first(p.again)
		}
		if n.phase == Held && n.asked > n.at && !n.late {
			first(a.confirmBy)
		}
	}
	return next, ok
}
