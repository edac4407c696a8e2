package explore

import (
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// deliver makes a node execute a request.
func (w *walker) deliver(st *state, mv move) {
	if w.m.hasKind() {
		sharing{w}.deliverShared(st, mv)
		return
	}
	s := &st.slots[mv.slot]
	c := &s.cells[mv.node]
	owner := w.m.keeper(mv.slot) + 1
	now := nodeNow(st, mv.node)
	before := w.lock(st, mv.node)
	after, r := before, w.m.Rules
	ttl := ticks(w.m.TTL)
	var a modelnode.Answer[uint8]
	if nd := &st.nodes[mv.node]; w.m.Lists && nd.list == nobodySaid && mv.kind == deliverAcquire {
		nd.list = s.role
	}
	switch mv.kind {
	case deliverAcquire, deliverAgain, deliverStrayAsk:
		ask := modelnode.Ask[uint8]{Owner: owner, TTL: ttl, Propose: w.m.number(w.m.older(s.propose, s.age))}
		if w.m.Waits {
			as := c.line.arriving(mv)
			ask.Wait, ask.Stand, ask.Ticket, ask.Stamp = true, as.stand, uint64(s.rank), uint64(as.stamp-1)
		}
		after, a = before.Acquire(r, ask, now)
	case deliverConfirm:
		after, a = before.Confirm(r, owner, w.m.number(w.m.older(c.confirm[mv.arg].token, s.age)), now)
	case deliverExtend:
		if s.short {
			ttl = tick
		}
		after, a = before.Extend(r, owner, ttl, now)
	case deliverStray:
		if mv.arg == 1 {
			ttl = tick
		}
		after, a = before.Extend(r, owner, ttl, now)
	case deliverHeal:
		after, a = before.Heal(r, owner, ttl, now)
	case deliverRelease:
		after, a = before.Release(r, c.line.ending(mv, owner), now)
	case deliverBury:
		end := c.line.ending(mv, owner)
		end.Tomb, end.Renewed = ttl, end.Renewed || w.heals()
		after, a = before.Release(r, end, now)
	}
	w.answer = a
	if c.freed && after.Owner == owner && (before.Owner != owner || before.Expiry <= now) {
		w.broke(Orphans)
	}
	if mv.kind == deliverRelease || mv.kind == deliverBury {
		w.checkFreed(&after, owner)
	}
	if w.m.Waits {
		w.checkLine(st, mv.node, &before, &after)
	}
	w.keep(st, mv.node, after)
	w.push(st, mv.node, a.Pushes)
	stays := c.release && w.reducesInQueue() && c.acquiring()
	if mv.kind == deliverRelease || mv.kind == deliverBury {
		st.skips -= min(st.skips, mv.arg&0xf, 1)
	}
	said := w.m.younger(w.m.packed(a.Token), s.age)
	how := saying(a)
	if w.m.Waits && c.deliveredInLine(mv, how, &a, said, a.Holder != 0 && st.before(a.Holder-1, mv.slot)) {
		return
	}
	c.delivered(mv, how, said, s.short, w.m.Check&Orphans != 0)
	c.release = c.release || stays
}

// delivered takes the executed request off the wire and puts the answer on it.
func (c *cell) delivered(mv move, how stage, said token, short, orphans bool) {
	switch mv.kind {
	case deliverAcquire:
		c.acquire = c.acquire.answered(how, said)
		c.again = c.again || mv.twice
	case deliverAgain:
		c.again = mv.twice
	case deliverConfirm:
		msg := c.confirm[mv.arg]
		if c.confirm[mv.arg] = msg.answered(how, said); mv.twice {
			c.ask(msg.token, stray)
		}
	case deliverExtend:
		msg := c.extend
		if mv.twice {
			c.stray(short)
		}
		c.extend = msg.answered(how, 0)
	case deliverStray:
		if !mv.twice {
			c.strays[mv.arg]--
		}
	case deliverHeal:
		if !mv.twice {
			c.heals--
		}
	case deliverRelease:
		c.release, c.freed = mv.twice, orphans
	case deliverBury:
		c.bury, c.freed = mv.twice, orphans
	}
}

// saying returns the kind of an answer.
func saying(a modelnode.Answer[uint8]) stage {
	switch {
	case a.Verdict == modelnode.Done:
		return saidYes
	case a.Verdict == modelnode.Taken && a.Holder == 0:
		return saidAbsent
	}
	return saidNo
}

// sharing is a walker in a world with a Kind.
type sharing struct{ *walker }

// kept is what node n keeps.
func (w sharing) kept(st *state, n uint8) (nd sharedNode) {
	nd.counter, nd.shut = st.nodes[n].counter, st.nodes[n].shut
	for i := range w.m.Attempts {
		c := &st.slots[i].cells[n]
		nd.keys[i] = sharedKey{c.key, c.tomb, c.share.slot}
	}
	return nd
}

// keepShared puts back what node n keeps after an operation.
func (w sharing) keepShared(st *state, n uint8, nd *sharedNode) {
	st.nodes[n].counter, st.nodes[n].shut = nd.counter, nd.shut
	for i := range w.m.Attempts {
		c := &st.slots[i].cells[n]
		c.key, c.tomb, c.share.slot = nd.keys[i].key, nd.keys[i].tomb, nd.keys[i].slot
	}
}

// deliverShared makes a node execute a request.
func (w sharing) deliverShared(st *state, mv move) {
	s := &st.slots[mv.slot]
	c := &s.cells[mv.node]
	q := sharedAsk{node: w.kept(st, mv.node), slot: mv.slot}
	for i := range w.m.Attempts {
		if st.slots[i].reads {
			q.readers[i] = true
		}
	}
	switch mv.kind {
	case deliverConfirm:
		q.op, q.token, q.agreed = quorum.Confirm, c.confirm[mv.arg].token, s.agreed
	case deliverMove:
		q.exact, q.agreed = true, s.agreed
	case deliverExtend, deliverStray:
		q.op, q.agreed = quorum.Extend, s.agreed
	case deliverHeal:
		q.op, q.agreed = quorum.Heal, s.agreed
	case deliverRelease:
		q.op = quorum.Release
	case deliverBury:
		q.op, q.tomb, q.always = quorum.Release, true, c.share.always || w.heals()
	}
	after := w.shared.execute(&q)
	stays := c.release && w.m.reducesShared() && (c.acquiring() || c.heals > 0)
	w.answer = after.answer
	w.keepShared(st, mv.node, &after.node)
	if c.freed && c.key > 0 && q.node.keys[mv.slot].key == 0 {
		w.broke(Orphans)
	}
	how, token := saying(w.answer), w.m.packed(w.answer.Token)
	if mv.kind == deliverMove {
		c.share.move = c.share.move.answered(how, token)
		return
	}
	if mv.kind == deliverAcquire && c.acquire.stage == asked && how == saidYes {
		c.share.said = after.slot
	}
	c.delivered(mv, how, token, s.short, w.m.Check&Orphans != 0)
	c.release = c.release || stays
}

// shareMoves appends the steps of the messages of such a world.
func (w sharing) shareMoves(i, n uint8, c *cell, out []move) []move {
	if c.share.move.sent() {
		out = append(out, move{kind: deliverMove, slot: i, node: n})
	}
	if c.share.move.stage >= saidNo {
		out = append(out, move{kind: hearMove, slot: i, node: n})
	}
	return out
}

// hearMove passes the answer to an acquire of the slot agreed on.
func (w sharing) hearMove(st *state, s *slot, n uint8) {
	c := &s.cells[n]
	e := answerEvent(quorum.Acquire, n, c.share.move, w.m.number(c.share.move.token))
	if e.Kind == quorum.Yes {
		e.Slots = slotText(s.agreed)
	}
	c.share.move = message{}
	w.stepAsking(st, s, e)
}
