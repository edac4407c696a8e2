package quorum

import (
	"math"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/validity"
)

// waitState is the additional state of an attempt that waits in the queues of the
// nodes. The attempt stays open while others have the lock. Its place in a node's queue
// is the acquire itself, which the node keeps until it has something to grant. To this
// machine a grant from the queue is the answer to a slow message, so tokens rise and
// leases exclude each other for the same reasons as without a queue. The differences:
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
type waitState struct {
	waits bool
	// Set while a minority of the nodes has granted the lock: when to ask the others
	// again for their holders, and the pause after that.
	lookAt    clock.Instant
	lookPause time.Duration
	acted     bool // the answers so far have been acted on
	repeated  bool // an acquire was sent a second time
	// The attempt is lost because another waiter comes first. Another one follows it.
	gaveWay  bool
	toSenior bool // that waiter is senior, and has no majority either
	toNext   bool // it is the next in each queue, since this one cannot get the lock
	blocked  bool // nobody in particular: it tries for other slots
	cutOff   cutOff
}

// nodeWait is the part of waitState that belongs to one node.
type nodeWait struct {
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
	a.waiting.waits, a.waiting.lookPause, a.waiting.cutOff.since = true, firstLook, start
	for i := range a.Nodes {
		a.nodes[i].wait.sentAt, a.nodes[i].wait.queueOnly = start, queueOnly
	}
}

// mayHold reports whether the node may have a lease or a place of this attempt.
func (p *nodeWait) mayHold() bool { return p.reached || p.sentAt != 0 }

// Repeated reports whether a repeated acquire may still be on its way when the lease
// is released. The release then has to leave tombstones.
func (a *Attempt) Repeated() bool {
	for i := range a.Nodes {
		n := &a.nodes[i]
		if p := &n.wait; buryRepeated && (p.uncertain || p.sentAt != 0 && a.waiting.repeated || n.move == moveAsked) {
			return true
		}
	}
	return false
}

// takeEventWaiting applies one node's event to an attempt that waits.
func (a *Attempt) takeEventWaiting(e Event, now clock.Instant) {
	n := &a.nodes[e.Node]
	p := &n.wait
	switch {
	case n.phase == Relinquish:
	case e.Kind == Discounted && n.phase != Held:
		n.phase, p.discounted, p.uncounted, p.reached = Doubtful, true, true, true
		if e.From == 0 { // an answer
			p.sentAt, p.slow, p.nextAt = 0, false, p.sentAt.Add(validity.RenewAfter(a.ttl))
		}
	case e.Kind == PushGranted:
		n.takeGrant(e, a.slots, e.From)
		a.waiting.acted = true // the other answers may be older than the hand-off
	case (e.Kind == PushLost || e.Kind == PushFree) && p.sentAt != 0:
		p.askNow = true // it may have overtaken the answer to the request under way
	case e.Kind == PushLost:
		p.nextAt = now
	case e.Kind == PushFree:
		for i := range a.Nodes { // the holder is about to release the others, too
			if q := &a.nodes[i].wait; q.holder == p.holder {
				q.senior = false
			}
		}
		p.free, p.holder, p.holderUntil = true, "", 0
	case e.Op == Acquire:
		a.takeAcquireReply(n, e, now)
	case e.Op == Confirm && n.canConfirm():
		if n.confirmed(e); n.phase != Held {
			p.nextAt = now.Add(e.RetryAfter)
		}
	}
}

// GaveWay reports whether the attempt was lost because another waiter comes first. The
// driver then begins another one, under a new owner of the same rank, or after HandedOver
// of a new rank.
func (a *Attempt) GaveWay() bool { return a.waiting.gaveWay }

// HandedOver reports whether the attempt gave way to whatever waiters are next, since it
// cannot get the lock itself at present.
func (a *Attempt) HandedOver() bool { return a.waiting.toNext }

// takeAcquireReply applies the answer to the acquire under way.
func (a *Attempt) takeAcquireReply(n *candidate, e Event, now clock.Instant) {
	p := &n.wait
	sent := p.sentAt
	p.sentAt, p.slow, p.free, p.discounted, p.nextAt = 0, false, false, false, sent.Add(validity.RenewAfter(a.ttl))
	p.uncounted = e.Uncounted
	if n.move == moveAsked {
		n.move = moveAnswered
	}
	if e.Kind != Unsent {
		p.reached = true
	}
	switch e.Kind {
	case Yes:
		n.takeGrant(e, a.slots, sent)
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

// takeGrant applies a grant of the request that left at from. A grant of other slots than
// those agreed on is older than the one that the node has given since.
func (n *candidate) takeGrant(e Event, agreed string, from clock.Instant) {
	switch {
	case n.phase != Held, e.Slots != n.slots && n.slots != agreed:
		n.phase, n.token, n.slots, n.asked, n.from, n.late = Held, e.Token, e.Slots, 0, from, false
		return
	case e.Slots != n.slots:
		return
	}
	n.token = max(n.token, e.Token)
	n.from, n.late = max(n.from, from), false
}

// stepWaiting decides what a waiting attempt does next: give way to another waiter, or ask nodes
// again.
func (a *Attempt) stepWaiting(now clock.Instant, out []Send) []Send {
	l := &a.waiting
	v := a.survey(now)
	l.cutOff.update(&a.Config, v.part, v.reached, v.asked, now)
	a.noteBlocked(&a.grants, now)
	switch {
	case !v.part:
		l.lookAt, l.lookPause = 0, firstLook
	case l.lookAt == 0:
		l.lookAt = now.Add(l.lookPause)
	}
	look := l.lookAt != 0 && now >= l.lookAt
	if giveWay && a.givesWay(&v, look, now) {
		a.verdict, l.gaveWay = Lost, true
		return out
	}
	l.acted = l.acted || v.complete(l)
	if look {
		l.lookPause = min(2*l.lookPause, a.longestPause())
		l.lookAt = now.Add(l.lookPause)
	}
	return a.askAgain(&v, look, now, out)
}

// longestPause is the longest pause between two looks.
func (a *Attempt) longestPause() time.Duration { return validity.RenewAfter(a.ttl) }

// askAgain sends the acquires that are due.
func (a *Attempt) askAgain(v *survey, look bool, now clock.Instant, out []Send) []Send {
	l := &a.waiting
	queueOnly := v.leader != "" || v.senior
	takesFree := !v.pending && !queueOnly && a.HasQuorum(v.reached&^v.stuck)
	for i := range a.Nodes {
		n := &a.nodes[i]
		p := &n.wait
		moves := a.moves(n)
		due := moves || now >= p.nextAt || look && !a.holds(n, now) || p.free && takesFree
		if p.sentAt == 0 && due {
			if p.queueOnly = queueOnly; moves {
				n.move, p.queueOnly = moveAsked, false
			}
			out = append(out, a.acquireOf(i, p.queueOnly))
			l.repeated = l.repeated || p.reached
			p.sentAt, l.acted = now, false
		}
	}
	return out
}

// fill asks for the lock on free nodes once the attempt has a majority: the more nodes
// have the lease, the more may fail.
func (a *Attempt) fill(now clock.Instant, out []Send) []Send {
	for i := range a.Nodes {
		n := &a.nodes[i]
		if p := &n.wait; p.free && p.sentAt == 0 {
			out = append(out, a.acquireOf(i, false))
			a.waiting.repeated = true
			p.sentAt, p.free, p.queueOnly = now, false, false
		}
	}
	return out
}

// nextWaiting is Next for an attempt that waits.
func (a *Attempt) nextWaiting() (next clock.Instant, ok bool) {
	first := func(t clock.Instant) {
		if !ok || t < next {
			next, ok = t, true
		}
	}
	if a.waiting.lookAt != 0 {
		first(a.waiting.lookAt)
	}
	if a.chooseAt != 0 && a.slots == "" {
		first(a.chooseAt)
	}
	if at := a.triesOthersAt(); at != 0 {
		first(at)
	}
	if handOverAt, cutOff := a.waiting.cutOff.handsOverAt(a.NodeTimeout); cutOff {
		first(handOverAt)
	}
	for i := range a.Nodes {
		n := &a.nodes[i]
		switch p := &n.wait; {
		case p.sentAt != 0 && !p.slow:
			first(p.sentAt.Add(a.NodeTimeout))
		case p.sentAt == 0:
			first(p.nextAt)
		}
		if n.confirming() && !n.late {
			first(a.confirmation.by)
		}
		if n.wait.holderGaining {
			first(n.wait.holderSince.Add(partPatience))
		}
	}
	return next, ok
}
