package explore

import "github.com/leasehold-dev/leasehold/internal/quorum"

// walker takes steps in the world of one Model. Each worker has its own.
type walker struct {
	*judge
	choices       choices
	nodes         nodes
	leases        leases
	attempts      attempts
	settler       settler
	canonicalizer canonicalizer
}

func newWalker(m *Model, ms *machines) *walker {
	j := &judge{driver: ms.driver(), m: m}
	w := &walker{judge: j, choices: choices{j.driver, m}, leases: leases{j}, canonicalizer: canonicalizer{driver: j.driver, m: m}}
	w.nodes = nodes{judge: j, shared: newSharedNodes(m)}
	w.attempts = attempts{j, &w.leases}
	w.settler = settler{j, &w.leases, &w.attempts}
	return w
}

// initial returns the states that a search begins with: one for each way in which the counters
// can be spread, up to a permutation of the nodes.
func (w *walker) initial() []state {
	m := w.m
	first := state{crashes: uint8(m.Crashes), losses: uint8(m.Losses), jumps: uint8(m.Jumps), twice: uint8(m.Twice),
		doubts: uint8(m.Doubts), skips: uint8(m.Skips)}
	if m.Lists {
		for n := range m.Nodes {
			if oldNodes.Has(n) {
				first.nodes[n].list = knowsOld
			}
		}
	}
	states := []state{first}
	for n := range m.Nodes {
		var more []state
		for _, st := range states {
			for c := 0; c <= m.Spread; c++ {
				st.nodes[n].counter = token(c)
				for ahead := 0; ahead <= m.ClockError; ahead++ {
					st.nodes[n].ahead = uint8(ahead)
					more = append(more, st)
				}
			}
		}
		states = more
	}
	for i := range states {
		if m.Begun {
			w.begun(&states[i])
		}
		if m.Wrote {
			st := &states[i]
			st.top, st.tops[0] = 1, 1
			for n := range m.Nodes {
				st.nodes[n].counter = token(bit(n != 1))
			}
		}
		if m.Crossed {
			w.crossed(&states[i])
		}
		if m.Full {
			w.begun(&states[i])
		}
	}
	return states
}

// apply takes one step and changes st accordingly. It records in w.broken what the step
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
		w.attempts.begin(st, s, mv.arg)
	case deliverAcquire, deliverAgain, deliverConfirm, deliverExtend, deliverStray, deliverRelease, deliverBury, deliverHeal, deliverStrayAsk, deliverMove:
		w.nodes.deliver(st, mv)
	case hearMove:
		w.attempts.hearMove(st, s, mv.node)
	case deliverReturn:
		w.nodes.deliverReturn(st, mv)
	case hearAcquire:
		w.attempts.hear(st, s, quorum.Acquire, mv.node, &c.acquire)
	case hearConfirm:
		w.attempts.hear(st, s, quorum.Confirm, mv.node, &c.confirm[mv.arg])
	case hearPush, poll:
		w.attempts.hearInQueue(st, s, mv)
	case doubtAcquire, unsentAcquire, doubtConfirm:
		w.attempts.doubt(st, s, mv)
	case hearExtend:
		e := answerEvent(quorum.Extend, mv.node, c.extend, 0)
		c.extend = message{}
		w.leases.stepRenewal(st, s, e)
	case doubtExtend:
		c.stray(s.short)
		w.leases.stepRenewal(st, s, quorum.Event{Kind: quorum.Unknown, Node: int(mv.node), Op: quorum.Extend})
	case tickAttempt:
		w.attempts.stepAsking(st, s, quorum.Event{Kind: quorum.Tick})
	case cancelAttempt:
		w.attempts.cancel(st, s)
	case tickVote:
		w.leases.stepRenewal(st, s, quorum.Event{Kind: quorum.Tick})
	case cancelVote:
		w.leases.stepRenewal(st, s, quorum.Event{Kind: quorum.Cancel})
	case renew:
		w.leases.renew(s, mv.arg == 1)
	case beginBeside:
		w.leases.beginBeside(s, quorum.Op(mv.arg))
	case deliverBeside:
		w.nodes.deliverBeside(st, mv)
	case hearBeside:
		e := answerEvent(s.beside.op, mv.node, message{stage: c.beside}, 1)
		c.beside = idle
		w.leases.stepBeside(st, s, e)
	case tickBeside:
		w.leases.stepBeside(st, s, quorum.Event{Kind: quorum.Tick})
	case cancelBeside:
		w.leases.stepBeside(st, s, quorum.Event{Kind: quorum.Cancel})
	case beginBreak:
		s.beginBreak(w.m)
	case deliverBreak:
		w.nodes.deliverBreak(st, mv)
	case release:
		w.leases.release(s)
	case rejoin:
		w.attempts.rejoin(st, mv)
	case claim:
		w.attempts.claim(st, s)
	case pass:
		w.pass(st)
	case crash, lose, jump, reread:
		w.nodes.fault(st, mv)
	case tellBoth, tellNew:
		w.nodes.tell(st, mv)
	}
	w.settler.settle(st)
	if w.m.Check&Mutex != 0 {
		w.checkMutex(st)
	}
	if w.m.Check&Bounded != 0 {
		w.checkHold(st)
	}
}

// begun makes one attempt get the lock, and another wait for it or, if there are two
// permits, get the other one.
func (w *walker) begun(st *state) {
	for i := range uint8(2) {
		w.apply(st, move{kind: begin, slot: i})
		for n := range uint8(w.m.Nodes) {
			w.apply(st, move{kind: deliverAcquire, slot: i, node: n})
		}
		for n := range uint8(w.m.Nodes) {
			if st.slots[i].life == asking {
				w.apply(st, move{kind: hearAcquire, slot: i, node: n})
			}
		}
	}
}

// pass lets one tick pass everywhere.
func (w *walker) pass(st *state) {
	for n := range w.m.Nodes {
		nd := &st.nodes[n]
		nd.quarantined -= min(nd.quarantined, 1)
		nd.counter, nd.read = w.m.counts(w.m.older(nd.counter, 1)), w.m.older(nd.read, 1)
		w.nodes.expire(st, n, 1)
	}
	st.top = w.m.older(st.top, 1)
	st.wait -= min(st.wait, 1)
	for i := range w.m.Attempts {
		if st.slots[i].life != unused {
			st.slots[i].age++
		}
		st.slots[i].passBreak()
		if st.slots[i].beside.vote != 0 {
			st.slots[i].beside.age++
		}
	}
}

// crossed makes the second attempt get the lock, and another slot at one node.
func (w *walker) crossed(st *state) {
	w.apply(st, move{kind: begin})
	w.apply(st, move{kind: deliverAcquire})
	w.apply(st, move{kind: begin, slot: 1})
	for n := range uint8(w.m.Nodes) {
		w.apply(st, move{kind: deliverAcquire, slot: 1, node: n})
	}
	for n := uint8(1); n < uint8(w.m.Nodes); n++ {
		w.apply(st, move{kind: hearAcquire, slot: 1, node: n})
	}
	st.slots[0] = slot{life: over, released: true} // its other messages never arrive
}
