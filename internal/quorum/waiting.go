package quorum

import (
	"math"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/validity"
)

// places is the part of an attempt that waits in the queues of the nodes. The attempt
// stays open while others have the lock. Its place in a node's queue is the acquire
// itself, which the node keeps until it has something to grant. To an attempt, a grant
// from the queue is the answer to a slow message, so tokens rise and leases exclude each
// other for the same reasons as without a queue. The differences:
//
//   - The acquire is sent again and again, to keep the place. Each grant counts from
//     the departure of the request that it answers, node by node. An expired grant
//     does not count.
//   - Several waiters may each be granted a part of the nodes. A waiter that sees a
//     senior one in the way gives way: the attempt is lost, its nodes go to the senior,
//     and the driver begins another attempt of the same rank. Giving up single nodes
//     under the same owner would be unsafe: a late message could take away a later grant.
//   - While another owner has a majority, a node can be free only because it lost the
//     holder's lease in a restart. It is the holder's to heal, so the waiter gives it
//     up in the same way, and then only queues there.
//   - A waiter that was granted a part of the nodes and does not reach a majority, or
//     reaches nodes whose grants do not count, keeps others from a lock that it cannot get.
//     It hands over what it has to the next in the queue of each node; see cutOff. The
//     attempt that follows joins the end of the queues, and takes no free lock before it
//     reaches a majority.
type places struct {
	waits bool // otherwise all else is zero
	nodes [MaxNodes]place
	// Set while a minority of the nodes has granted the lock: when to ask the others
	// again for their holders, and the pause after that.
	lookAt    clock.Instant
	lookPause time.Duration
	acted     bool // the answers so far have been acted on
	repeated  bool // an acquire was sent a second time
	// Since when another owner has had the slots agreed on. 0: none has.
	blockedSince clock.Instant
	cutOff       cutOff
	gaveWay      gaveWay
}

// gaveWay is for whom a waiting attempt gave up its nodes. It is lost then, and another one
// follows it.
type gaveWay uint8

const (
	gaveNoWay     gaveWay = iota
	gaveToLeader          // the owner that has a majority
	gaveToSenior          // a senior waiter, which has no majority either
	gaveToNext            // the next waiter in each queue, since this one cannot get the lock
	gaveForOthers         // nobody in particular: it tries for other slots
)

// place is the attempt's place in the queue of one node.
type place struct {
	sentAt        clock.Instant // when the acquire under way left; 0: none is under way
	slow          bool          // it is past its node timeout
	nextAt        clock.Instant // when to send the next acquire
	askNow        bool          // send the next one when the one under way is answered
	reached       bool          // a request has reached it, or may have
	uncertain     bool          // the outcome of an acquire is unknown
	discounted    bool          // the node granted the lock, and its grants do not count
	uncounted     bool          // the node would do so
	holder        string        // the owner that has the lock there
	holderSince   clock.Instant // when it was first seen
	holderUntil   clock.Instant // when its lease ends unless it is renewed
	senior        bool          // the holder comes before this attempt
	holderGaining bool          // the holder may still be getting other nodes
	queueOnly     bool          // the acquire under way does not take a free lock
	free          bool          // the lock is free there, and this attempt is in the queue
}

const (
	// firstLook is how long an attempt waits for further grants after the first ones:
	// the nodes send them at about the same time.
	firstLook = 10 * time.Millisecond
	// leaderPatience is how long an attempt keeps its nodes while another owner has a
	// majority. Most likely that owner is releasing the lock, and one of its nodes learned
	// of it late.
	leaderPatience = 16 * firstLook
	// partPatience is how long an owner with a minority of the nodes may take to get a
	// majority. After that it has probably died, or does not use the queue. Juniors then
	// try, and give way once more if that fails, since the owner may only be slow.
	partPatience = 16 * firstLook
)

// NewWait begins an attempt that waits in the nodes' queues. The driver sends Acquire
// to every node, and then what Step returns. queueOnly is for an attempt that follows
// one that gave way: its first acquires do not take a free lock.
func NewWait(c Config, ttl time.Duration, start clock.Instant, queueOnly bool) (a Attempt) {
	a.BeginWait(c, ttl, start, queueOnly)
	return a
}

// BeginWait is NewWait in place: an attempt is large.
func (a *Attempt) BeginWait(c Config, ttl time.Duration, start clock.Instant, queueOnly bool) {
	a.Begin(c, ttl, start)
	a.places.waits, a.places.lookPause, a.places.cutOff.since = true, firstLook, start
	for i := range a.Nodes {
		a.places.nodes[i].sentAt, a.places.nodes[i].queueOnly = start, queueOnly
	}
}

// GaveWay reports whether the attempt was lost because another waiter comes first. The
// driver then begins another one, under a new owner of the same rank, or after HandedOver
// of a new rank.
func (a *Attempt) GaveWay() bool { return a.places.gaveWay != gaveNoWay }

// HandedOver reports whether the attempt gave way to whatever waiters are next, since it
// cannot get the lock itself at present.
func (a *Attempt) HandedOver() bool { return a.places.gaveWay == gaveToNext }

// Repeated reports whether a repeated acquire may still be on its way when the lease
// is released. The release then has to leave tombstones.
func (a *Attempt) Repeated() bool {
	for i := range a.Nodes {
		p := &a.places.nodes[i]
		if buryRepeated && (p.uncertain || p.sentAt != 0 && a.places.repeated || a.nodes[i].move == moveAsked) {
			return true
		}
	}
	return false
}

// mayHold reports whether the node may have a lease or a place of this attempt.
func (p *place) mayHold() bool { return p.reached || p.sentAt != 0 }

// mayArrive reports whether an acquire may still be on its way to the node.
func (p *place) mayArrive() bool { return p.uncertain || p.sentAt != 0 }

// take applies one node's event. slots are those agreed on.
func (w *places) take(g *grants, slots string, e Event, now clock.Instant) {
	n, p := &g.nodes[e.Node], &w.nodes[e.Node]
	switch {
	case n.phase == Relinquish:
	case e.Kind == Discounted && n.phase != Held:
		n.phase, p.discounted, p.uncounted, p.reached = Doubtful, true, true, true
		if e.From == 0 { // an answer
			p.sentAt, p.slow, p.nextAt = 0, false, p.sentAt.Add(validity.RenewAfter(g.ttl))
		}
	case e.Kind == PushGranted:
		n.takeGrant(e, slots, e.From)
		w.acted = true // the other answers may be older than the hand-off
	case (e.Kind == PushLost || e.Kind == PushFree) && p.sentAt != 0:
		p.askNow = true // it may have overtaken the answer to the request under way
	case e.Kind == PushLost:
		p.nextAt = now
	case e.Kind == PushFree:
		for i := range g.Nodes { // the holder is about to release the others, too
			if q := &w.nodes[i]; q.holder == p.holder {
				q.senior = false
			}
		}
		p.free, p.holder, p.holderUntil = true, "", 0
	case e.Op == Acquire:
		p.takeReply(n, g.ttl, slots, e, now)
	case e.Op == Confirm && n.canConfirm():
		if n.confirmed(e); n.phase != Held {
			p.nextAt = now.Add(e.RetryAfter)
		}
	}
}

// takeReply applies the answer of the node n to the acquire under way.
func (p *place) takeReply(n *candidate, ttl time.Duration, slots string, e Event, now clock.Instant) {
	sent := p.sentAt
	p.sentAt, p.slow, p.free, p.discounted, p.nextAt = 0, false, false, false, sent.Add(validity.RenewAfter(ttl))
	p.uncounted = e.Uncounted
	if n.move == moveAsked {
		n.move = moveAnswered
	}
	if e.Kind != Unsent {
		p.reached = true
	}
	switch e.Kind {
	case Yes:
		n.takeGrant(e, slots, sent)
	case No, Absent:
		// A grant that was pushed since answers this same request. The push may
		// overtake the answer.
		if n.phase != Held || n.from < sent {
			if p.holder != e.Holder || n.phase != Refused {
				p.holderSince = now
			}
			if e.HolderSince != 0 {
				p.holderSince = min(p.holderSince, e.HolderSince)
			}
			n.phase, p.holder, p.senior, p.holderUntil = Refused, e.Holder, e.Senior, now.Add(e.ExpiresIn)
			if e.ExpiresIn < 0 {
				p.holderUntil = math.MaxInt64
			}
			p.free = e.Kind == Absent && p.queueOnly
			p.nextAt = min(p.nextAt, now.Add(e.RetryAfter))
		}
	case Unsent:
		if n.phase != Held {
			n.phase = Missing
		}
		p.nextAt = min(p.nextAt, now.Add(e.RetryAfter))
	default:
		if p.uncertain = true; n.phase != Held {
			n.phase = Doubtful
		}
		p.nextAt = min(p.nextAt, now.Add(e.RetryAfter))
	}
	if p.askNow {
		p.askNow, p.nextAt = false, now
	}
}

// step decides what a waiting attempt does next: give way to another waiter, or ask nodes
// again.
func (w *places) step(g *grants, s *slotChoice, now clock.Instant, out []Send) []Send {
	v := w.survey(g, now)
	w.cutOff.update(&g.Config, v.part, v.reached, v.asked, now)
	w.noteBlocked(g, s, now)
	switch {
	case !v.part:
		w.lookAt, w.lookPause = 0, firstLook
	case w.lookAt == 0:
		w.lookAt = now.Add(w.lookPause)
	}
	look := w.lookAt != 0 && now >= w.lookAt
	if w.gaveWay = w.givesWay(g, &v, look, now); w.gaveWay != gaveNoWay {
		return out
	}
	w.acted = w.acted || w.complete(&v)
	if look {
		w.lookPause = min(2*w.lookPause, g.longestPause())
		w.lookAt = now.Add(w.lookPause)
	}
	return w.askAgain(g, s, &v, look, now, out)
}

// longestPause is the longest pause between two looks.
func (g *grants) longestPause() time.Duration { return validity.RenewAfter(g.ttl) }

// askAgain sends the acquires that are due.
func (w *places) askAgain(g *grants, s *slotChoice, v *survey, look bool, now clock.Instant, out []Send) []Send {
	queueOnly := v.leader != "" || v.senior
	takesFree := !v.pending && !queueOnly && g.HasQuorum(v.reached&^v.stuck)
	for i := range g.Nodes {
		n, p := &g.nodes[i], &w.nodes[i]
		moves := s.moves(n)
		due := moves || now >= p.nextAt || look && !g.holds(n, now) || p.free && takesFree
		if p.sentAt == 0 && due {
			if p.queueOnly = queueOnly; moves {
				n.move, p.queueOnly = moveAsked, false
			}
			out = append(out, s.acquire(i, p.reached, p.queueOnly))
			w.repeated = w.repeated || p.reached
			p.sentAt, w.acted = now, false
		}
	}
	return out
}

// fill asks for the lock on free nodes once the attempt has a majority: the more nodes
// have the lease, the more may fail.
func (w *places) fill(s *slotChoice, now clock.Instant, out []Send) []Send {
	for i := range w.nodes {
		if p := &w.nodes[i]; p.free && p.sentAt == 0 {
			out = append(out, s.acquire(i, p.reached, false))
			w.repeated = true
			p.sentAt, p.free, p.queueOnly = now, false, false
		}
	}
	return out
}

// noteBlocked notes whether other owners have the slots agreed on.
func (w *places) noteBlocked(g *grants, s *slotChoice, now clock.Instant) {
	switch {
	case s.slots == "" || g.HasQuorum(w.obtainable(g, s.slots, now)):
		w.blockedSince = 0
	case w.blockedSince == 0:
		w.blockedSince = now
	}
}

// obtainable returns the nodes that have these slots for the attempt, or may give them
// without another owner's losing them.
func (w *places) obtainable(g *grants, slots string, now clock.Instant) (set Set) {
	for i := range g.Nodes {
		n, p := &g.nodes[i], &w.nodes[i]
		if g.holds(n, now) && (n.slots == slots || n.move != moveAnswered) || p.sentAt != 0 && !p.slow || p.free {
			set = set.with(i)
		}
	}
	return set
}

// triesOthersAt returns when the attempt tries for other slots; 0: it does not.
func (w *places) triesOthersAt() clock.Instant {
	if w.blockedSince == 0 {
		return 0
	}
	return w.blockedSince.Add(slotPatience)
}

// next is Next for an attempt that waits. confirmBy is the node timeout of its confirmations.
func (w *places) next(g *grants, s *slotChoice, confirmBy clock.Instant) (next clock.Instant, ok bool) {
	first := func(t clock.Instant) {
		if !ok || t < next {
			next, ok = t, true
		}
	}
	if w.lookAt != 0 {
		first(w.lookAt)
	}
	if s.chooseAt != 0 && s.slots == "" {
		first(s.chooseAt)
	}
	if at := w.triesOthersAt(); at != 0 {
		first(at)
	}
	if handOverAt, cutOff := w.cutOff.handsOverAt(g.NodeTimeout); cutOff {
		first(handOverAt)
	}
	for i := range g.Nodes {
		n, p := &g.nodes[i], &w.nodes[i]
		switch {
		case p.sentAt != 0 && !p.slow:
			first(p.sentAt.Add(g.NodeTimeout))
		case p.sentAt == 0:
			first(p.nextAt)
		}
		if n.confirming() && !n.late {
			first(confirmBy)
		}
		if p.holderGaining {
			first(p.holderSince.Add(partPatience))
		}
	}
	return next, ok
}
