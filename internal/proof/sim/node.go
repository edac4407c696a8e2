package sim

import (
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
)

// node is one server: the model of one, with a clock of its own, that can be
// slow, down, or forgetful. It does one command at a time.
type node struct {
	w     *world
	index int
	locks []modelnode.Lock[int]

	// Its clock: what it showed when the run began, and how many parts in a
	// million it is fast. steps are what it was set ahead or back since.
	epoch clock.Instant
	ppm   int64
	steps time.Duration
	backs int
	// discountedUntil is when clients that saw its clock jump ahead count it again.
	discountedUntil time.Duration

	list  list // that it was told it is part of
	up    bool
	life  int           // counts its starts
	opens clock.Instant // by its own clock: until then it is in quarantine
	slow  time.Duration
	ails  int      // faults by which it only answers errors
	line  []served // commands that wait, in order
	busy  bool     // with the first of them

	writes []write // of the last second, the oldest first
	// When each owner was last released here, by the node's clock, as far as
	// the node can know.
	releasedAt map[int]clock.Instant
}

type served struct {
	k *call
	c *conn
}

// write is what a lock was before it was written.
type write struct {
	at   time.Duration
	lock int
	was  modelnode.Lock[int]
}

// midnight of the first of January 2000, when bubbles begin.
const midnight = clock.Instant(946684800 * time.Second)

// clock is the node's own time. Tokens count its microseconds.
func (n *node) clock() clock.Instant {
	t := n.w.now()
	return n.epoch.Add(t + t/1_000_000*time.Duration(n.ppm) + n.steps)
}

// trueLength is how long d of the node's clock lasts.
func (n *node) trueLength(d time.Duration) time.Duration {
	return time.Duration(float64(d) * 1e6 / float64(1_000_000+n.ppm))
}

func (n *node) reachable() bool { return n.up }

// shut is for how long the node is still in quarantine.
func (n *node) shut() time.Duration { return n.trueLength(max(0, n.opens.Sub(n.clock()))) }

// mayHaveForgotten begins a quarantine.
func (n *node) mayHaveForgotten() {
	clear(n.releasedAt)
	n.opens = max(n.opens, n.clock().Add(n.w.quarantine()))
}

// serve does a command, after those that came before.
func (n *node) serve(k *call, c *conn) {
	n.line = append(n.line, served{k, c})
	if !n.busy {
		n.work()
	}
}

// work does what waits, each command in its time.
func (n *node) work() {
	for n.busy = false; len(n.line) > 0; n.line = n.line[1:] {
		if n.slow > 0 {
			n.busy = true
			life := n.life
			n.w.after(n.slow, outside, func() {
				if n.life == life {
					n.finish()
					n.line = n.line[1:]
					n.work()
				}
			})
			return
		}
		n.finish()
	}
}

// finish does the first command in line.
func (n *node) finish() { n.line[0].c.reply(n.line[0].k, n.apply(n.line[0].k)) }

// apply is one command's atomic step.
func (n *node) apply(k *call) driver.Reply {
	if !n.serves(k) {
		n.w.hist.refuses(k)
		return driver.Reply{Kind: quorum.Unsent, Report: store.NodeOutcome{Outcome: store.Refused, Err: errList}}
	}
	if n.ails > 0 {
		n.w.hist.refuses(k)
		a := driver.Reply{Kind: quorum.Unsent, Report: store.NodeOutcome{Outcome: store.Refused, Err: errAiling}}
		if n.w.switches.ErrorIsNo {
			a.Kind = quorum.No
		}
		return a
	}
	q, rules, now := k.q, n.w.switches.Rules, n.clock()
	was := n.locks[q.lock]
	was.ShutUntil = n.opens
	l, a := was, modelnode.Answer[int]{}
	switch q.Op {
	case quorum.Acquire:
		l, a = was.Acquire(rules, modelnode.Ask[int]{
			Owner: q.owner, TTL: q.Lease.TTL, Propose: q.propose, Spare: uint64(q.Lease.Spare),
			Wait: q.Waits, Again: q.Again, Stand: q.QueueOnly, Behind: q.IfHeld, Barge: q.Lease.Barge, Ticket: store.Rank(q.Lease.Owner), Stamp: uint64(q.Stamp),
		}, now)
	case quorum.Confirm:
		if q.Least > 0 {
			l, a = was.Reserve(rules, q.owner, q.Least, q.Token, now)
		} else {
			l, a = was.Confirm(rules, q.owner, q.Token, now)
		}
	case quorum.Extend:
		l, a = was.Extend(rules, q.owner, q.Lease.TTL, now)
	case quorum.Heal:
		l, a = was.Heal(rules, q.owner, q.Lease.TTL, now)
	case quorum.Release:
		var tomb time.Duration
		if q.Tomb {
			tomb = q.Lease.TTL
		}
		l, a = was.Release(rules, modelnode.Ending[int]{Owner: q.owner, Tomb: tomb, Renewed: q.Lease.Renewed, GivesWay: q.GivesWay, To: q.to, Propose: q.propose, Reach: n.reaches}, now)
	}
	n.record(q.lock, was)
	n.locks[q.lock] = l
	n.w.hist.apply(k, a)
	n.w.judge.applied(n, k, a)
	n.tell(a.Told)
	said := n.say(a)
	said.Waiting = l.Waiting(now) > 0
	return said
}

// serves looks at the list that the client has, where that matters: when a lease
// begins or goes on.
func (n *node) serves(k *call) bool {
	if !n.w.script.Roll || k.q.Op == quorum.Confirm || k.q.Op == quorum.Release {
		return true
	}
	by := k.l.c.list
	if n.list == anyList {
		n.list = by
	}
	return n.w.switches.AnyList || n.list.admits(by)
}

// record keeps what the last second of writes overwrote.
func (n *node) record(lock int, was modelnode.Lock[int]) {
	t := n.w.now()
	old := 0
	for old < len(n.writes) && n.writes[old].at < t-time.Second {
		old++
	}
	n.writes = append(n.writes[old:], write{t, lock, was})
}

// say is a as the Redis store would understand it.
func (n *node) say(a modelnode.Answer[int]) driver.Reply {
	switch a.Verdict {
	case modelnode.Done:
		return driver.Reply{Kind: quorum.Yes, Token: a.Token, Reserved: a.Reserved, Counted: true, Clock: n.clock(), Report: store.NodeOutcome{Outcome: store.Granted}}
	case modelnode.Taken:
		if a.Holder == 0 {
			return driver.Reply{Kind: quorum.Absent, Report: store.NodeOutcome{Outcome: store.Absent}, Position: a.Position, Clock: n.clock()}
		}
		left := (a.ExpiresIn + time.Millisecond - 1).Truncate(time.Millisecond)
		return driver.Reply{Kind: quorum.No, Report: store.NodeOutcome{
			Outcome: store.Taken, Holder: store.Holder{Owner: n.w.hist.owner(a.Holder), Host: "simulated"}, ExpiresIn: left,
		}, Position: a.Position, Clock: n.clock()}

	case modelnode.Buried:
		return driver.Reply{Kind: quorum.No, Report: store.NodeOutcome{Outcome: store.Refused, Err: errBuried}}
	}
	return driver.Reply{Kind: quorum.Unsent, Report: store.NodeOutcome{Outcome: store.Quarantined, ExpiresIn: a.ExpiresIn, Err: errShut}}
}

// forget loses the locks and nothing else.
func (n *node) forget() {
	for i, l := range n.locks {
		n.locks[i] = modelnode.Lock[int]{Counter: l.Counter, CounterExpiry: l.CounterExpiry}
	}
	clear(n.releasedAt)
}

// wipe is forget, noticed: the counters are gone too, and so is the mark by
// which the node's scripts know that it may grant.
func (n *node) wipe() {
	clear(n.locks)
	n.writes = nil
	n.mayHaveForgotten()
}

// crash takes the node down for a while; what it loses is as Crash says.
func (n *node) crash(down, loss time.Duration) {
	w := n.w
	n.up = false
	n.life++
	for _, c := range w.clients {
		if conn := c.links[n.index].conn; conn != nil {
			conn.reset()
		}
		c.links[n.index].ear.cut()
	}
	n.line, n.busy = nil, false
	lost := false
	switch {
	case loss > time.Second:
		lost = true
		clear(n.locks)
	case loss > 0:
		for i := len(n.writes) - 1; i >= 0 && n.writes[i].at > w.now()-loss; i-- {
			n.locks[n.writes[i].lock], lost = n.writes[i].was, true
		}
	}
	n.writes = nil
	if lost {
		n.mayHaveForgotten()
	}
	life := n.life
	w.after(down, outside, func() {
		if n.life == life {
			n.up = true
			if lost { // clients can tell only when it started
				n.mayHaveForgotten()
			}
			w.hist.node("is up", n, 0)
		}
	})
}

var errAiling = errors.New("can not write now")

var errList = errors.New("the client has another list of nodes")

var errShut = errors.New("in quarantine")

var errBuried = errors.New("this owner was already released")
