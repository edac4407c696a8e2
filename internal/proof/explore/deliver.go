package explore

import "github.com/leasehold-dev/leasehold/internal/proof/modelnode"

// deliver makes a node execute a request.
func (w *walker) deliver(st *state, mv move) {
	if w.m.hasKind() {
		w.deliverShared(st, mv)
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
