package explore

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// beside is a vote on one lease besides a renewal that goes on by itself: the holder
// extends the lease, reserves a token more, or releases the lock and waits for the answer.
// There is one at a time. Its messages are in the cells.
type beside struct {
	vote  machine // 0: there is none
	op    quorum.Op
	age   uint8 // ticks since it began
	begun uint8 // extensions and reservations so far
}

// freshBeside returns the first value of a vote of that kind. Lists have none.
func freshBeside(op quorum.Op) machine {
	switch op {
	case quorum.Release:
		return fresh + 1
	case quorum.Confirm:
		return fresh + 2
	}
	return fresh
}

// hasBeside reports whether leases have such votes.
func (m *Model) hasBeside() bool { return m.Extends+m.Reserves > 0 || m.ReleaseVote }

// besideMoves appends what a client can do about such a vote.
func (w *walker) besideMoves(s *slot, i uint8, out []move) []move {
	b := &s.beside
	switch {
	case b.vote != 0:
		if next, ok := w.vote(b.vote).Next(); ok && next <= at(b.age) {
			out = append(out, move{kind: tickBeside, slot: i})
		}
		out = append(out, move{kind: cancelBeside, slot: i})
	case s.life != holding || !w.valid(s):
	default:
		if int(b.begun) < w.m.Extends {
			out = append(out, move{kind: beginBeside, slot: i, arg: uint8(quorum.Extend)})
		}
		if int(b.begun) < w.m.Reserves {
			out = append(out, move{kind: beginBeside, slot: i, arg: uint8(quorum.Confirm)})
		}
	}
	return out
}

// beginBeside begins such a vote and asks all nodes.
func (w *walker) beginBeside(s *slot, op quorum.Op) {
	if op == quorum.Extend {
		s.machine = w.stepLease(s.machine, leasefsm.RenewalSent, 0, at(s.age))
	}
	s.beside = beside{vote: freshBeside(op), op: op, begun: s.beside.begun + 1}
	for n := range w.m.Nodes {
		s.cells[n].beside = asked
	}
}

// reserved is the token that a holder reserves next.
func (s *slot) reserved() token { return s.token + 1 }

// deliverBeside makes a node execute the request of such a vote.
func (w *walker) deliverBeside(st *state, mv move) {
	s := &st.slots[mv.slot]
	c := &s.cells[mv.node]
	owner, now := w.m.keeper(mv.slot)+1, nodeNow(st, mv.node)
	l, r := w.lock(st, mv.node), w.m.Rules
	var a modelnode.Answer[uint8]
	switch s.beside.op {
	case quorum.Extend:
		l, a = l.Extend(r, owner, ticks(w.m.TTL), now)
	case quorum.Confirm:
		l, a = l.Confirm(r, owner, w.m.number(w.m.older(s.reserved(), s.age)), now)
	case quorum.Release:
		l, a = l.Release(r, modelnode.Ending[uint8]{Owner: owner, Tomb: ticks(w.m.TTL), Renewed: w.heals()}, now)
		c.freed = c.freed || w.m.Check&Orphans != 0
	}
	w.answer = a
	w.keep(st, mv.node, l)
	c.beside = saying(a)
}

// stepBeside steps the vote, and does what its verdict leads to.
func (w *walker) stepBeside(st *state, s *slot, e quorum.Event) {
	b := &s.beside
	step := w.stepVote(b.vote, e, b.age)
	for _, send := range step.sends {
		s.cells[send.Node].heal()
	}
	b.vote = step.next
	v := w.vote(b.vote)
	if v.Verdict() == quorum.Open {
		return
	}
	won, op, age := v.Verdict() == quorum.Won, b.op, b.age
	switch {
	case op == quorum.Release:
		if won {
			w.checkFree(st, s)
		}
	case op == quorum.Confirm && s.life == holding:
		if won && w.lease(s.machine).Passable(at(s.age)) { // another goroutine gets it
			s.token = s.reserved()
			w.checkToken(st, s, s.token)
		}
	case s.life == holding:
		w.extended(st, s, v, at(s.age-age))
	}
	w.endBeside(s)
	if s.life == holding && !w.lease(s.machine).Live() {
		w.end(s)
	}
}

// endBeside stops waiting for the answers. Messages that are under way stay so.
func (w *walker) endBeside(s *slot) {
	b := &s.beside
	for n := range w.m.Nodes {
		c := &s.cells[n]
		if c.beside == asked {
			switch b.op {
			case quorum.Release:
				c.bury = true
			case quorum.Confirm:
				c.ask(s.reserved(), stray)
			default:
				c.strays[0] = min(c.strays[0]+1, 3)
			}
		}
		c.beside = idle
	}
	*b = beside{begun: b.begun}
}

// checkFree looks at a release that was said to have worked: others can have the lock.
func (w *walker) checkFree(st *state, s *slot) {
	free := 0
	for n := range w.m.Nodes {
		if s.cells[n].key == 0 {
			free++
		}
	}
	if free < w.m.Nodes/2+1 {
		w.broke(Freed)
	}
}

// checkHold looks for a lease that is valid for longer than it may be held.
func (w *walker) checkHold(st *state) {
	for i := range w.m.Attempts {
		s := &st.slots[i]
		if s.life == holding && w.valid(s) && at(s.age).Sub(w.lease(s.machine).Since()) >= ticks(w.m.MaxHold) {
			w.broke(Bounded)
		}
	}
}

// packedBeside is such a vote and its messages as a number.
func (s *slot) packedBeside(m *Model) uint64 {
	b := &s.beside
	var f fields
	f.put(uint64(b.vote), 32)
	f.put(uint64(b.op), 3)
	f.put(uint64(b.age), 5)
	f.put(uint64(b.begun), 3)
	for n := range m.Nodes {
		f.put(uint64(s.cells[n].beside), 3)
	}
	return f.word
}

// unpackBeside sets it. The cells have been unpacked.
func (s *slot) unpackBeside(m *Model, word uint64) {
	f := fields{word: word}
	s.beside = beside{vote: machine(f.get(32)), op: quorum.Op(f.get(3)), age: uint8(f.get(5)), begun: uint8(f.get(3))}
	for n := range m.Nodes {
		s.cells[n].beside = stage(f.get(3))
	}
}

// besideMark is what a node's part of such a vote adds to its mark.
func (c *cell) besideMark(votes *marked, n int) uint64 {
	return mix(uint64(c.beside), uint64(votes.node[n])|1<<40)
}

// besideAction describes an action of such a vote.
func (t *trace) besideAction(mv move, who string) string {
	s := &t.before.slots[mv.slot]
	op, node := s.beside.op, mv.node+1
	if mv.kind == beginBeside {
		op = quorum.Op(mv.arg)
	}
	what := map[quorum.Op]string{quorum.Extend: "EXTEND", quorum.Confirm: "CONFIRM " + t.token(s.reserved()), quorum.Release: "RELEASE"}[op]
	switch mv.kind {
	case beginBeside:
		return fmt.Sprintf("the holder of %s itself sends %s to all nodes", who, what)
	case deliverBeside:
		done := map[bool]string{true: "done", false: "refused"}[t.answer.Verdict == modelnode.Done]
		return fmt.Sprintf("node %d executes %s's %s: %s", node, who, what, done)
	case hearBeside:
		heard := map[bool]string{true: "done", false: "refused"}[s.cells[mv.node].beside == saidYes]
		return fmt.Sprintf("%s hears from node %d about its %s: %s", who, node, what, heard)
	case tickBeside:
		return fmt.Sprintf("a timer of %s's %s fires", who, what)
	}
	return fmt.Sprintf("%s does not wait for the answers to its %s any longer", who, what)
}
