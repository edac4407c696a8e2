package explore

import (
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// deliver makes a node execute a request.
func (ns *nodes) deliver(st *state, mv move) {
	if ns.m.hasKind() {
		ns.deliverShared(st, mv)
		return
	}
	s := &st.slots[mv.slot]
	c := &s.cells[mv.node]
	owner := ns.m.keyOwner(mv.slot) + 1
	now := nodeNow(st, mv.node)
	before := ns.lock(st, mv.node)
	after, r := before, ns.m.Rules
	ttl := ticks(ns.m.TTL)
	var a modelnode.Answer[uint8]
	if nd := &st.nodes[mv.node]; ns.m.Lists && nd.list == nobodySaid && mv.kind == deliverAcquire {
		nd.list = s.role
	}
	switch mv.kind {
	case deliverAcquire, deliverAgain, deliverStrayAsk:
		ask := modelnode.Ask[uint8]{Owner: owner, TTL: ttl, Propose: ns.m.number(ns.m.older(s.propose, s.age))}
		if ns.m.Waits {
			as := c.queue.arriving(mv)
			ask.Wait, ask.Stand, ask.Ticket, ask.Stamp = true, as.stand, uint64(s.rank), uint64(as.stamp-1)
		}
		after, a = before.Acquire(r, ask, now)
	case deliverConfirm:
		after, a = before.Confirm(r, owner, ns.m.number(ns.m.older(c.confirm[mv.arg].token, s.age)), now)
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
		after, a = before.Release(r, c.queue.ending(mv, owner), now)
	case deliverBury:
		end := c.queue.ending(mv, owner)
		end.Tombstone, end.Renewed = ttl, end.Renewed || ns.healing
		after, a = before.Release(r, end, now)
	}
	ns.answer = a
	if c.freed && after.Owner == owner && (before.Owner != owner || before.Expiry <= now) {
		ns.broke(Orphans)
	}
	if mv.kind == deliverRelease || mv.kind == deliverBury {
		ns.checkFreed(&after, owner)
	}
	if ns.m.Waits {
		ns.checkQueue(st, mv.node, &before, &after)
	}
	ns.keep(st, mv.node, after)
	ns.push(st, mv.node, a.Pushes)
	stays := c.release && ns.m.reducesInQueue() && c.acquiring()
	if mv.kind == deliverRelease || mv.kind == deliverBury {
		st.skips -= min(st.skips, mv.arg&0xf, 1)
	}
	said := ns.m.younger(ns.m.packed(a.Token), s.age)
	how := saying(a)
	if ns.m.Waits && c.deliveredInLine(mv, how, &a, said, a.Holder != 0 && st.before(a.Holder-1, mv.slot)) {
		return
	}
	c.delivered(mv, how, said, s.short, ns.m.Check&Orphans != 0)
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

// deliverShared makes a node execute a request.
func (ns *nodes) deliverShared(st *state, mv move) {
	s := &st.slots[mv.slot]
	c := &s.cells[mv.node]
	q := sharedAsk{node: ns.sharedAt(st, mv.node), slot: mv.slot}
	for i := range ns.m.Attempts {
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
		q.op, q.tombstone, q.always = quorum.Release, true, c.share.always || ns.healing
	}
	after := ns.shared.execute(&q)
	stays := c.release && ns.m.reducesShared() && (c.acquiring() || c.heals > 0)
	ns.answer = after.answer
	ns.keepShared(st, mv.node, &after.node)
	if c.freed && c.key > 0 && q.node.keys[mv.slot].key == 0 {
		ns.broke(Orphans)
	}
	how, token := saying(ns.answer), ns.m.packed(ns.answer.Token)
	if mv.kind == deliverMove {
		c.share.move = c.share.move.answered(how, token)
		return
	}
	if mv.kind == deliverAcquire && c.acquire.stage == asked && how == saidYes {
		c.share.said = after.slot
	}
	c.delivered(mv, how, token, s.short, ns.m.Check&Orphans != 0)
	c.release = c.release || stays
}

// deliverBeside makes a node execute the request of a vote besides the renewal.
func (ns *nodes) deliverBeside(st *state, mv move) {
	s := &st.slots[mv.slot]
	c := &s.cells[mv.node]
	owner, now := ns.m.keyOwner(mv.slot)+1, nodeNow(st, mv.node)
	l, r := ns.lock(st, mv.node), ns.m.Rules
	var a modelnode.Answer[uint8]
	switch s.beside.op {
	case quorum.Extend:
		l, a = l.Extend(r, owner, ticks(ns.m.TTL), now)
	case quorum.Release:
		l, a = l.Release(r, modelnode.Ending[uint8]{Owner: owner, Tombstone: ticks(ns.m.TTL), Renewed: ns.healing}, now)
		c.freed = c.freed || ns.m.Check&Orphans != 0
	}
	ns.answer = a
	ns.keep(st, mv.node, l)
	c.beside = saying(a)
}

// deliverReturn makes a node execute a release together with the ACQUIRE of the next
// attempt.
func (ns *nodes) deliverReturn(st *state, mv move) {
	s := &st.slots[mv.slot]
	c := &s.cells[mv.node]
	owner := c.queue.comes
	old := &st.slots[owner-1].cells[mv.node]
	before := ns.lock(st, mv.node)
	end := old.queue.ending(mv, owner)
	end.Tombstone, end.Renewed = ticks(ns.m.TTL), c.queue.renewed || ns.healing
	next := modelnode.Ask[uint8]{Owner: mv.slot + 1, TTL: ticks(ns.m.TTL), Ticket: uint64(s.rank), Behind: true}
	after, ended, a := before.Return(ns.m.Rules, end, next, nodeNow(st, mv.node))

	old.freed = ns.m.Check&Orphans != 0
	old.release = old.release || ns.m.reducesInQueue() && old.acquiring()
	ns.checkFreed(&after, owner)
	ns.checkQueue(st, mv.node, &before, &after)
	ns.keep(st, mv.node, after)
	ns.push(st, mv.node, ended.Pushes)
	st.skips -= min(st.skips, mv.arg&0xf, 1)
	if a.Position > 0 {
		ns.actions[Placed]++
	} else {
		ns.actions[Bare]++
	}
	c.deliveredInLine(mv, saying(a), &a, 0, a.Holder != 0 && st.before(a.Holder-1, mv.slot))
	ns.answer = a
	ns.answer.Pushes = ended.Pushes
}

// ending is the release that is delivered.
func (q *queue) ending(mv move, owner uint8) modelnode.Ending[uint8] {
	e := modelnode.Ending[uint8]{Owner: owner, Renewed: q.always, GivesWay: q.gives, To: mv.arg >> 4}
	if gone := mv.arg & 0xf; gone != 0 {
		e.Reach = func(o uint8) bool { return o != gone }
	}
	return e
}

// arriving is the ACQUIRE that is delivered.
func (q *queue) arriving(mv move) ask {
	if mv.kind == deliverStrayAsk {
		return q.strays[mv.arg]
	}
	return ask{q.sent + 1, q.stand}
}

// deliveredInLine takes an executed request off the wire and puts the answer on
// it; false: it is not one of those that wait. senior says that the owner that has the
// lock comes before us.
func (c *cell) deliveredInLine(mv move, how stage, a *modelnode.Answer[uint8], said token, senior bool) bool {
	q := &c.queue
	switch mv.kind {
	case deliverAcquire:
		if mv.twice {
			q.strayed(ask{q.sent + 1, q.stand})
		}
		stood := q.stand
		c.acquire = c.acquire.answered(how, said)
		q.answered()
		q.hears(a, senior)
		q.stand = stood && how == saidAbsent
	case deliverReturn:
		if q.behind && c.acquire.sent() {
			c.acquire = c.acquire.answered(how, said)
			q.answered()
			q.hears(a, senior)
		}
		if !mv.twice {
			q.comes, q.renewed = 0, false
		}
	case deliverStrayAsk:
		if !mv.twice {
			q.strays[mv.arg] = ask{}
		}
	default:
		return false
	}
	return true
}

// hears keeps the holder that an answer to an ACQUIRE names.
func (q *queue) hears(a *modelnode.Answer[uint8], senior bool) {
	if a.Verdict == modelnode.Taken {
		q.holder, q.lasts, q.senior = a.Holder, uint8(a.ExpiresIn/tick), senior
	}
}
