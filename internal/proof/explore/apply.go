package explore

import (
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// apply takes one step and changes st accordingly. It notes in w.broken what the step
// broke.
func (w *walker) apply(st *state, mv move) {
	w.broken = 0
	if mv.twice {
		st.twice--
	}
	s := &st.slots[mv.slot]
	c := &s.cells[mv.node]
	switch mv.kind {
	case begin:
		w.begin(st, s, mv.arg)
	case deliverAcquire, deliverAgain, deliverConfirm, deliverExtend, deliverStray, deliverRelease, deliverBury, deliverHeal, deliverStrayAsk, deliverMove:
		w.deliver(st, mv)
	case hearMove:
		sharing{w}.hearMove(st, s, mv.node)
	case deliverReturn:
		w.deliverReturn(st, mv)
	case hearAcquire:
		w.hear(st, s, quorum.Acquire, mv.node, &c.acquire)
	case hearConfirm:
		w.hear(st, s, quorum.Confirm, mv.node, &c.confirm[mv.arg])
	case hearPush, poll:
		w.hearInLine(st, s, mv)
	case doubtAcquire, unsentAcquire, doubtConfirm:
		w.doubt(st, s, mv)
	case hearExtend:
		e := answerEvent(quorum.Extend, mv.node, c.extend, 0)
		c.extend = message{}
		w.stepRenewal(st, s, e)
	case doubtExtend:
		c.stray(s.short)
		w.stepRenewal(st, s, quorum.Event{Kind: quorum.Unknown, Node: int(mv.node), Op: quorum.Extend})
	case tickAttempt:
		w.stepAsking(st, s, quorum.Event{Kind: quorum.Tick})
	case cancelAttempt:
		w.cancel(st, s)
	case tickVote:
		w.stepRenewal(st, s, quorum.Event{Kind: quorum.Tick})
	case cancelVote:
		w.stepRenewal(st, s, quorum.Event{Kind: quorum.Cancel})
	case renew:
		w.renew(s, mv.arg == 1)
	case beginBeside:
		w.beginBeside(s, quorum.Op(mv.arg))
	case deliverBeside:
		w.deliverBeside(st, mv)
	case hearBeside:
		e := answerEvent(s.beside.op, mv.node, message{stage: c.beside}, 1)
		c.beside = idle
		w.stepBeside(st, s, e)
	case tickBeside:
		w.stepBeside(st, s, quorum.Event{Kind: quorum.Tick})
	case cancelBeside:
		w.stepBeside(st, s, quorum.Event{Kind: quorum.Cancel})
	case release:
		w.giveBack(s)
	case comeBack:
		w.comeBack(st, mv)
	case claim:
		w.claim(st, s)
	case pass:
		w.pass(st)
	case crash, lose, jump, reread:
		w.fault(st, mv)
	case tellBoth, tellNew:
		w.tell(st, mv)
	}
	w.settle(st)
	if w.m.Check&Mutex != 0 {
		w.checkMutex(st)
	}
	if w.m.Check&Bounded != 0 {
		w.checkHold(st)
	}
}

func (w *walker) begin(st *state, s *slot, proposal uint8) {
	*s = slot{life: asking, machine: fresh, cells: s.cells} // the cells may hold a shared owner's key
	if w.m.Lists {
		s.role, proposal = role(proposal), 0
		s.machine = freshFor(s.role)
	}
	if w.m.Kind.Shared {
		s.reads, proposal = proposal > 0, 0
	}
	if proposal > 0 && !w.m.Waits {
		s.propose = token(w.m.Proposals[proposal-1])
	}
	if w.m.NoTime {
		s.floor = st.top
	}
	if w.m.Waits {
		w.follow(st, s, proposal > 0)
	}
	for n := range w.m.Nodes {
		if s.role.asks(n) {
			s.cells[n].acquire = message{stage: asked}
			s.cells[n].line.asks = uint8(min(w.m.Asks, 1))
		}
	}
}

// hear passes a node's answer to an attempt.
func (w *walker) hear(st *state, s *slot, op quorum.Op, n uint8, msg *message) {
	e := answerEvent(op, n, *msg, w.m.number(msg.token))
	if *msg = (message{}); w.m.Waits && op == quorum.Acquire {
		e = w.inLine(s, &s.cells[n].line, e)
		s.cells[n].line.answered()
	}
	if op == quorum.Acquire && e.Kind == quorum.Yes {
		e.Slots = slotText(s.cells[n].share.said)
		s.cells[n].share.said = 0
	}
	w.stepAsking(st, s, e)
}

// doubt tells an attempt that no answer will come.
func (w *walker) doubt(st *state, s *slot, mv move) {
	e := quorum.Event{Kind: quorum.Unknown, Node: int(mv.node), Op: quorum.Acquire}
	msg := &s.cells[mv.node].acquire
	if mv.kind == doubtConfirm {
		e.Op, msg = quorum.Confirm, &s.cells[mv.node].confirm[mv.arg]
	}
	if mv.kind == unsentAcquire {
		e.Kind, *msg = quorum.Unsent, message{}
		s.cells[mv.node].line.unsent()
	}
	if w.m.Waits {
		st.doubts -= min(st.doubts, 1)
		e.RetryAfter = ticks(w.m.TTL)
	}
	if w.m.Waits && e.Op == quorum.Acquire {
		s.cells[mv.node].dropAsk()
		s.cells[mv.node].line.behind = false
	}
	if e.Op == quorum.Acquire {
		s.cells[mv.node].share.said = 0
	}
	*msg = msg.abandon()
	w.stepAsking(st, s, e)
}

// stepAsking steps an attempt that is open, or lost and cleaning up.
func (w *walker) stepAsking(st *state, s *slot, e quorum.Event) {
	step := w.stepAttempt(s.machine, e, s.age)
	w.send(s, step)
	switch step.verdict {
	case quorum.Won:
		w.won(st, s, step)
	case quorum.Lost:
		w.lostAttempt(s, step)
		if step.handedOver { // what follows it comes last
			w.enter(st, s, false)
		}
	}
}

// send carries out what a step led to.
func (w *walker) send(s *slot, step *attemptStep) {
	s.machine = step.next
	for _, send := range step.sends {
		c := &s.cells[send.Node]
		if send.Slots != "" {
			s.agreed = slotOf(send.Slots)
		}
		if send.Op == quorum.Release && w.m.hasKind() {
			c.share.always = send.AlwaysTomb
		} else if send.Op == quorum.Release {
			c.line.always, c.line.gives, c.line.toSenior = send.AlwaysTomb, send.GivesWay, send.ToSenior
		}
		switch {
		case send.Op == quorum.Acquire && w.m.hasKind():
			c.share.move = message{stage: asked}
		case send.Op == quorum.Acquire:
			w.askAgain(s, c, send.QueueOnly)
		case send.Op == quorum.Confirm:
			c.ask(w.m.packed(send.Token), asked)
		case send.Tomb:
			c.bury = true
		default:
			c.release = true
		}
	}
}

// won makes the attempt a lease.
func (w *walker) won(st *state, s *slot, step *attemptStep) {
	t := w.m.packed(step.token)
	if step.slots != "" {
		s.agreed = slotOf(step.slots)
	}
	w.checkToken(st, s, t)
	for n := range w.m.Nodes {
		c := &s.cells[n]
		if w.m.Waits {
			c.abandonAsks()
		}
		c.acquire = c.acquire.abandon()
		c.share.said, c.share.move = 0, c.share.move.abandon()
		c.abandonConfirms()
	}
	if s.unclaimed {
		w.actions[Early]++
	}
	s.token, s.floor, s.repeated, s.unclaimed = t, 0, (w.m.Waits || w.m.hasSlots()) && step.repeated, false
	from := step.from
	if w.m.MaxDelay == 0 { // the ages of what is under way make no difference any more
		s.age -= uint8(from.Sub(epoch) / tick)
		from = epoch
	}
	s.machine = w.stepLease(fresh, leasefsm.Granted, from, at(s.age))
	s.life = holding
	if !w.lease(s.machine).Live() || w.m.NoTime && !w.m.EveryEvent {
		w.end(s)
	}
}

// lostAttempt does what a lost attempt still has to do.
func (w *walker) lostAttempt(s *slot, step *attemptStep) {
	s.life, s.floor = lost, 0
	for n := range w.m.Nodes {
		s.cells[n].abandonConfirms()
		s.cells[n].share.move = s.cells[n].share.move.abandon()
		if w.m.Waits { // it has sent all its releases
			s.cells[n].abandonAsks()
		}
	}
	s.gaveWay, s.unclaimed = step.gaveWay, s.unclaimed && step.gaveWay
	if s.unclaimed {
		w.actions[Yielded]++
	}
	if !w.m.EveryEvent {
		w.writeOff(s)
	}
	var waiting uint8
	for n := range w.m.Nodes {
		if s.cells[n].acquire.awaited() {
			waiting |= 1 << n
		}
	}
	if waiting == 0 {
		s.life, s.machine, s.released = over, 0, true
		w.checkGivenBack(s)
		return
	}
	s.machine = w.asLost(s.machine, s.age, waiting)
}

func (c *cell) abandonConfirms() {
	for i := range c.confirm {
		c.confirm[i] = c.confirm[i].abandon()
	}
}

// stray makes the client stop waiting for the answer to an extend.
func (c *cell) stray(short bool) {
	if c.extend.sent() {
		kind := 0
		if short {
			kind = 1
		}
		c.strays[kind] = min(c.strays[kind]+1, 3)
	}
	c.extend = message{}
}

// renew begins a renewal.
func (w *walker) renew(s *slot, short bool) {
	s.machine = w.stepLease(s.machine, leasefsm.RenewalSent, 0, at(s.age))
	s.vote, s.voteAt, s.short = freshFor(s.role), s.age, short
	s.renewals++
	for n := range w.m.Nodes {
		if s.role.asks(n) {
			s.cells[n].extend = message{stage: asked}
		}
	}
}

// stepRenewal steps the vote of a renewal, and the lease by its verdict.
func (w *walker) stepRenewal(st *state, s *slot, e quorum.Event) {
	step := w.stepVote(s.vote, e, s.age-s.voteAt)
	for _, send := range step.sends {
		s.cells[send.Node].heal()
	}
	s.vote = step.next
	v := w.vote(s.vote)
	if v.Verdict() == quorum.Open {
		return
	}
	start := at(s.voteAt)
	if s.short { // as if all that the lease is shorter were drift
		start = start.Add(-ticks(w.m.TTL - 1))
	}
	w.extended(st, s, v, start)
	w.endVote(s)
	if !w.lease(s.machine).Live() {
		w.end(s)
		return
	}
	if !w.m.EveryEvent {
		w.rebase(s)
	}
}

// extended tells the lease of the verdict on an extension that began at start.
func (w *walker) extended(st *state, s *slot, v *quorum.Vote, start clock.Instant) {
	event := leasefsm.RenewalUnknown
	switch {
	case v.Gone():
		event = leasefsm.RenewalDenied
	case v.Verdict() == quorum.Won:
		event = leasefsm.Renewed
	}
	before := s.machine
	s.machine = w.stepLease(s.machine, event, start, at(s.age))
	if v.Verdict() == quorum.Won && w.heals() {
		// The vote still hears late answers, and they can make it heal. It is sound to
		// assume that they do: at a node that has this lease already, or another's,
		// healing does nothing.
		for n := range w.m.Nodes {
			if c := &s.cells[n]; c.extend.sent() || c.extend.stage == saidAbsent || c.beside != idle {
				c.heal()
			}
		}
	}
	if event == leasefsm.Renewed && w.lease(s.machine).Until() > w.lease(before).Until() && w.valid(s) {
		w.checkRenewal(st, s)
	}
}

// heal puts one more message on the wire that gives the node the lease.
func (c *cell) heal() { c.heals = min(c.heals+1, 3) }

func (w *walker) endVote(s *slot) {
	for n := range w.m.Nodes {
		s.cells[n].stray(s.short)
	}
	s.vote, s.voteAt, s.short = 0, 0, false
}

// end ends the lease, but its messages and keys remain. Its holder may still release
// it.
func (w *walker) end(s *slot) {
	w.endVote(s)
	w.endBeside(s)
	s.life, s.machine, s.token, s.renewals, s.beside = over, 0, 0, 0, beside{}
	if !w.m.EveryEvent && !w.m.Returns {
		w.giveBack(s)
	}
}

// giveBack makes the holder release. As in production, a node without the key keeps a
// tombstone: the acquire may not have arrived yet.
func (w *walker) giveBack(s *slot) {
	s.released = true
	if s.life == holding {
		w.end(s)
	}
	if w.m.ReleaseVote {
		w.beginBeside(s, quorum.Release)
		s.beside.begun = 0
		return
	}
	for n := range w.m.Nodes {
		s.cells[n].bury = s.role.asks(n)
		if s.cells[n].line.always = s.repeated; w.m.hasKind() {
			s.cells[n].line.always, s.cells[n].share.always = false, s.repeated
		}
	}
}
