package explore

import (
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// attempts has the steps of clients to get the lock: they begin attempts, get answers, and
// wait.
type attempts struct {
	*judge
	leases *leases
}

func (a *attempts) begin(st *state, s *slot, proposal uint8) {
	*s = slot{life: asking, machine: fresh, cells: s.cells} // the cells may hold a shared owner's key
	if a.m.Lists {
		s.role, proposal = role(proposal), 0
		s.machine = freshFor(s.role)
	}
	if a.m.Kind.Shared {
		s.reads, proposal = proposal > 0, 0
	}
	if proposal > 0 && !a.m.Waits {
		s.propose = token(a.m.Proposals[proposal-1])
	}
	if a.m.NoTime {
		s.floor = st.top
	}
	if a.m.Waits {
		a.follow(st, s, proposal > 0)
	}
	for n := range a.m.Nodes {
		if s.role.asks(n) {
			s.cells[n].acquire = message{stage: asked}
			s.cells[n].queue.asks = uint8(min(a.m.Asks, 1))
		}
	}
}

// hear passes a node's answer to an attempt.
func (a *attempts) hear(st *state, s *slot, op quorum.Op, n uint8, msg *message) {
	e := answerEvent(op, n, *msg, a.m.number(msg.token))
	if *msg = (message{}); a.m.Waits && op == quorum.Acquire {
		e = a.inQueue(s, &s.cells[n].queue, e)
		s.cells[n].queue.answered()
	}
	if op == quorum.Acquire && e.Kind == quorum.Yes {
		e.Slots = slotText(s.cells[n].share.said)
		s.cells[n].share.said = 0
	}
	a.stepAsking(st, s, e)
}

// doubt tells an attempt that no answer will come.
func (a *attempts) doubt(st *state, s *slot, mv move) {
	e := quorum.Event{Kind: quorum.Unknown, Node: int(mv.node), Op: quorum.Acquire}
	msg := &s.cells[mv.node].acquire
	if mv.kind == doubtConfirm {
		e.Op, msg = quorum.Confirm, &s.cells[mv.node].confirm[mv.arg]
	}
	if mv.kind == unsentAcquire {
		e.Kind, *msg = quorum.Unsent, message{}
		s.cells[mv.node].queue.unsent()
	}
	if a.m.Waits {
		st.doubts -= min(st.doubts, 1)
		e.RetryAfter = ticks(a.m.TTL)
	}
	if a.m.Waits && e.Op == quorum.Acquire {
		s.cells[mv.node].dropAsk()
		s.cells[mv.node].queue.behind = false
	}
	if e.Op == quorum.Acquire {
		s.cells[mv.node].share.said = 0
	}
	*msg = msg.abandon()
	a.stepAsking(st, s, e)
}

// stepAsking steps an attempt that is open, or lost and cleaning up.
func (a *attempts) stepAsking(st *state, s *slot, e quorum.Event) {
	step := a.stepAttempt(s.machine, e, s.age)
	a.send(s, step)
	switch step.verdict {
	case quorum.Won:
		a.won(st, s, step)
	case quorum.Lost:
		a.lostAttempt(s, step)
		if step.handedOver { // what follows it comes last
			a.enter(st, s, false)
		}
	}
}

// send puts the messages that a step led to on their way.
func (a *attempts) send(s *slot, step *attemptStep) {
	s.machine = step.next
	for _, send := range step.sends {
		c := &s.cells[send.Node]
		if send.Slots != "" {
			s.agreed = slotOf(send.Slots)
		}
		if send.Op == quorum.Release && a.m.hasKind() {
			c.share.always = send.AlwaysTombstone
		} else if send.Op == quorum.Release {
			c.queue.always, c.queue.gives, c.queue.toSenior = send.AlwaysTombstone, send.GivesWay, send.ToSenior
		}
		switch {
		case send.Op == quorum.Acquire && a.m.hasKind():
			c.share.move = message{stage: asked}
		case send.Op == quorum.Acquire:
			a.askAgain(s, c, send.QueueOnly)
		case send.Op == quorum.Confirm:
			c.ask(a.m.packed(send.Token), asked)
		case send.Tombstone:
			c.bury = true
		default:
			c.release = true
		}
	}
}

// won makes the attempt a lease.
func (a *attempts) won(st *state, s *slot, step *attemptStep) {
	t := a.m.packed(step.token)
	if step.slots != "" {
		s.agreed = slotOf(step.slots)
	}
	a.checkToken(st, s, t)
	for n := range a.m.Nodes {
		c := &s.cells[n]
		if a.m.Waits {
			c.abandonAsks()
		}
		c.acquire = c.acquire.abandon()
		c.share.said, c.share.move = 0, c.share.move.abandon()
		c.abandonConfirms()
	}
	if s.unclaimed {
		a.actions[Early]++
	}
	s.token, s.floor, s.repeated, s.unclaimed = t, 0, (a.m.Waits || a.m.hasSlots()) && step.repeated, false
	from := step.from
	if a.m.MaxDelay == 0 { // the ages of what is under way make no difference any more
		s.age -= uint8(from.Sub(epoch) / tick)
		from = epoch
	}
	s.machine = a.stepLease(fresh, leasefsm.Granted, from, at(s.age))
	s.life = holding
	if !a.lease(s.machine).Live() || a.m.NoTime && !a.m.EveryEvent {
		a.leases.end(s)
	}
}

// lostAttempt does what a lost attempt still has to do.
func (a *attempts) lostAttempt(s *slot, step *attemptStep) {
	s.life, s.floor = lost, 0
	for n := range a.m.Nodes {
		s.cells[n].abandonConfirms()
		s.cells[n].share.move = s.cells[n].share.move.abandon()
		if a.m.Waits { // it has sent all its releases
			s.cells[n].abandonAsks()
		}
	}
	s.gaveWay, s.unclaimed = step.gaveWay, s.unclaimed && step.gaveWay
	if s.unclaimed {
		a.actions[Yielded]++
	}
	if !a.m.EveryEvent {
		a.writeOff(s)
	}
	var waiting uint8
	for n := range a.m.Nodes {
		if s.cells[n].acquire.awaited() {
			waiting |= 1 << n
		}
	}
	if waiting == 0 {
		s.life, s.machine, s.released = over, 0, true
		a.checkGivenBack(s)
		return
	}
	s.machine = a.asLost(s.machine, s.age, waiting)
}

// hearMove passes the answer to an acquire of the slot agreed on.
func (a *attempts) hearMove(st *state, s *slot, n uint8) {
	c := &s.cells[n]
	e := answerEvent(quorum.Acquire, n, c.share.move, a.m.number(c.share.move.token))
	if e.Kind == quorum.Yes {
		e.Slots = slotText(s.agreed)
	}
	c.share.move = message{}
	a.stepAsking(st, s, e)
}

// event returns the event of an answer that a client hears.
func answerEvent(op quorum.Op, n uint8, msg message, number uint64) quorum.Event {
	e := quorum.Event{Kind: quorum.No, Node: int(n), Op: op}
	switch msg.stage {
	case saidYes:
		e.Kind, e.Token = quorum.Yes, number
	case saidAbsent:
		e.Kind = quorum.Absent
	}
	return e
}

// writeOff tells a lost attempt that each answer has come or will never come.
func (a *attempts) writeOff(s *slot) {
	for n := range a.m.Nodes {
		msg := &s.cells[n].acquire
		if !msg.awaited() {
			continue
		}
		e := quorum.Event{Kind: quorum.Unknown, Node: n, Op: quorum.Acquire}
		if msg.stage == saidYes {
			e.Kind, e.Token = quorum.Yes, 1 // which token makes no difference any more
		}
		*msg = msg.abandon()
		s.cells[n].share.said = 0
		a.send(s, a.stepAttempt(s.machine, e, s.age))
	}
}
