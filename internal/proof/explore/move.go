package explore

import "github.com/leasehold-dev/leasehold/internal/quorum"

// move is one step the world can take.
type move struct {
	kind moveKind
	slot uint8
	node uint8
	arg  uint8 // which message of several, which proposal, which peer
	// twice: the request is delivered, and stays under way all the same.
	twice bool
}

type moveKind uint8

const (
	begin          moveKind = iota // a client begins an attempt
	deliverAcquire                 // a node executes a request
	deliverAgain
	deliverConfirm
	deliverExtend
	deliverStray
	deliverRelease
	deliverBury
	deliverHeal
	deliverStrayAsk
	deliverReturn
	deliverMove
	hearMove
	hearAcquire // a client hears an answer
	hearConfirm
	hearExtend
	hearPush
	doubtAcquire // a client is told that no answer will come
	doubtConfirm
	doubtExtend
	unsentAcquire // a client is told that a request never left
	poll          // a client takes it that it has missed something
	tickAttempt   // a client's timer fires
	tickVote
	cancelAttempt // a client gives up
	cancelVote
	renew
	beginBeside // a holder begins another vote; see beside
	deliverBeside
	hearBeside
	tickBeside
	cancelBeside
	release
	comeBack // a client releases, with a place for its next attempt
	claim    // it wants the lock again
	pass     // time passes
	crash
	lose
	jump
	reread
	tellBoth // the operator tells a node which list it is of
	tellNew
)

// moves appends to out every step the world can take from st.
func (w *walker) moves(st *state, out []move) []move {
	m := w.m
	active, free := 0, -1
	for i := range m.Attempts {
		s := &st.slots[i]
		switch {
		case s.life == unused && free < 0:
			free = i
		case s.life == asking, s.life == holding && w.valid(s):
			active++
		}
	}
	if m.ReuseOwner && free >= 0 { // a client's attempts follow each other
		for i := free; i < m.Attempts; i++ {
			if st.slots[i].life == unused && (i < m.Clients || !w.busy(&st.slots[i-m.Clients])) {
				out = append(out, move{kind: begin, slot: uint8(i)})
			}
		}
	} else if free >= 0 && active < m.Clients && m.Lists {
		for r := knowsOld; r <= knowsNew; r++ {
			out = append(out, move{kind: begin, slot: uint8(free), arg: uint8(r)})
		}
	} else if free >= 0 && active < m.Clients {
		choices := len(m.Proposals) + 1
		if m.Kind.Shared {
			choices = 2
		}
		if m.AnyRank && free > 0 {
			choices = 2
		}
		for p := range choices {
			if m.Kind.Shared && p == 0 && m.Writers != 0 && (sharing{w}).writers(st) >= m.Writers {
				continue
			}
			out = append(out, move{kind: begin, slot: uint8(free), arg: uint8(p)})
		}
	}
	for i := range m.Attempts {
		out = w.slotMoves(st, uint8(i), out)
	}
	if m.Returns && free >= 0 {
		out = w.returnMoves(st, uint8(free), active, out)
	}
	if !m.NoTime {
		out = append(out, move{kind: pass})
	}
	if m.Lists {
		out = w.operator(st, out)
	}
	return w.faults(st, out)
}

// busy reports whether a client cannot make another attempt beside this one.
func (w *walker) busy(s *slot) bool {
	return s.life == unused || s.life == asking || s.life == holding && w.valid(s)
}

// slotMoves appends the steps of one attempt, its lease and its messages.
func (w *walker) slotMoves(st *state, i uint8, out []move) []move {
	s := &st.slots[i]
	if s.life == unused {
		return out
	}
	for n := range w.m.Nodes {
		out = w.cellMoves(st, i, uint8(n), out)
	}
	if w.m.hasBeside() {
		out = w.besideMoves(s, i, out)
	}
	switch s.life {
	case asking:
		if s.unclaimed && w.standing(s) {
			out = append(out, move{kind: claim, slot: i})
		}
		if next, ok := w.attempt(s.machine).Next(); ok && !s.unclaimed && next <= at(s.age) && w.tells(tickAttempt, s, nil) {
			out = append(out, move{kind: tickAttempt, slot: i})
		}
		out = append(out, move{kind: cancelAttempt, slot: i})
	case holding:
		if s.vote != 0 {
			if next, ok := w.vote(s.vote).Next(); ok && next <= at(s.age-s.voteAt) && w.tells(tickVote, s, nil) {
				out = append(out, move{kind: tickVote, slot: i})
			}
			out = append(out, move{kind: cancelVote, slot: i})
		} else if int(s.renewals) < w.m.Renewals && w.valid(s) {
			out = append(out, move{kind: renew, slot: i})
			if w.m.ShortRenewals {
				out = append(out, move{kind: renew, slot: i, arg: 1})
			}
		}
		out = append(out, move{kind: release, slot: i})
	case over:
		if !s.released {
			out = append(out, move{kind: release, slot: i})
		}
		if s.unclaimed { // no attempt follows it
			out = append(out, move{kind: cancelAttempt, slot: i})
		}
	}
	return out
}

// cellMoves appends the steps of the messages between one attempt and one node.
func (w *walker) cellMoves(st *state, i, n uint8, out []move) []move {
	s := &st.slots[i]
	c := &s.cells[n]
	request := func(kind moveKind, arg uint8) {
		out = append(out, move{kind: kind, slot: i, node: n, arg: arg})
		if st.twice > 0 {
			out = append(out, move{kind: kind, slot: i, node: n, arg: arg, twice: true})
		}
	}
	hear := func(msg message, kind, doubt moveKind, arg uint8) {
		budget := !w.m.Waits || w.m.EveryEvent || st.doubts > 0
		if msg.stage >= saidNo {
			out = append(out, move{kind: kind, slot: i, node: n, arg: arg})
		}
		if msg.awaited() && budget && w.tells(doubt, s, c) {
			out = append(out, move{kind: doubt, slot: i, node: n, arg: arg})
		}
	}
	before := c.acquire.sent() // an earlier message that has not arrived
	served := w.serves(st, s, n)
	if c.acquire.sent() && !c.line.behind && served {
		request(deliverAcquire, 0)
	}
	if c.again && served {
		request(deliverAgain, 0)
	}
	hear(c.acquire, hearAcquire, doubtAcquire, 0)
	if w.m.hasKind() {
		out = sharing{w}.shareMoves(i, n, c, out)
	}
	if w.m.Waits {
		out = w.lineMoves(st, i, n, out)
	}
	if c.acquire.stage == asked && s.life == asking && w.tells(unsentAcquire, s, c) {
		out = append(out, move{kind: unsentAcquire, slot: i, node: n})
	}
	for k := range c.confirm {
		if c.confirm[k].sent() && !(w.m.InOrder && before) {
			request(deliverConfirm, uint8(k))
		}
		before = before || c.confirm[k].sent()
		hear(c.confirm[k], hearConfirm, doubtConfirm, uint8(k))
	}
	late := w.m.InOrder && before
	if c.extend.sent() && !late && served {
		request(deliverExtend, 0)
	}
	hear(c.extend, hearExtend, doubtExtend, 0)
	for k, count := range c.strays {
		if count > 0 && !late && served {
			request(deliverStray, uint8(k))
		}
	}
	if c.heals > 0 && !late && served {
		request(deliverHeal, 0)
	}
	if c.beside == asked {
		out = append(out, move{kind: deliverBeside, slot: i, node: n})
	} else if c.beside != idle {
		out = append(out, move{kind: hearBeside, slot: i, node: n})
	}
	late = late || w.m.InOrder && (c.extend.sent() || c.strays != [2]uint8{} || c.heals > 0)
	if c.release && !late && (c.key > 0 || !w.reduces() && !w.m.reducesShared()) {
		out = w.releases(st, deliverRelease, i, n, out)
	}
	if c.bury && !late {
		out = w.releases(st, deliverBury, i, n, out)
	}
	return out
}

// faults appends the faults of nodes.
func (w *walker) faults(st *state, out []move) []move {
	for i := range w.m.Nodes {
		n := uint8(i)
		if st.crashes > 0 {
			out = append(out, move{kind: crash, node: n})
		}
		if (st.losses > 0 || w.m.NoTime && w.m.Losses == 0) && w.owner(st, n) >= 0 {
			out = append(out, move{kind: lose, node: n})
		}
		if st.jumps > 0 {
			out = append(out, move{kind: jump, node: n})
		}
		nd := &st.nodes[n]
		if nd.unread == 0 || w.m.Reread == RereadAfter && nd.shut > 0 {
			continue
		}
		for p := range w.m.Nodes {
			// A peer that is itself without its counter has nothing to tell.
			if nd.unread&(1<<p) != 0 && st.nodes[p].unread == 0 {
				out = append(out, move{kind: reread, node: n, arg: uint8(p)})
			}
		}
	}
	return out
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
