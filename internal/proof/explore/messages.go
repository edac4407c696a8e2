package explore

// shareMoves appends the steps of the messages that a world with a Kind has besides.
func (ch *choices) shareMoves(i, n uint8, c *cell, out []move) []move {
	if c.share.move.sent() {
		out = append(out, move{kind: deliverMove, slot: i, node: n})
	}
	if c.share.move.stage >= saidNo {
		out = append(out, move{kind: hearMove, slot: i, node: n})
	}
	return out
}

// serves reports whether node n serves the slot's client.
func (ch *choices) serves(st *state, s *slot, n uint8) bool {
	return !ch.m.Lists || ch.m.AnyList || st.nodes[n].list.admits(s.role)
}

// cellMoves appends the steps of the messages between one attempt and one node.
func (ch *choices) cellMoves(st *state, i, n uint8, out []move) []move {
	s := &st.slots[i]
	c := &s.cells[n]
	request := func(kind moveKind, arg uint8) {
		out = append(out, move{kind: kind, slot: i, node: n, arg: arg})
		if st.twice > 0 {
			out = append(out, move{kind: kind, slot: i, node: n, arg: arg, twice: true})
		}
	}
	hear := func(msg message, kind, doubt moveKind, arg uint8) {
		budget := !ch.m.Waits || ch.m.EveryEvent || st.doubts > 0
		if msg.stage >= saidNo {
			out = append(out, move{kind: kind, slot: i, node: n, arg: arg})
		}
		if msg.awaited() && budget && ch.tells(doubt, s, c) {
			out = append(out, move{kind: doubt, slot: i, node: n, arg: arg})
		}
	}
	before := c.acquire.sent() // an earlier message that has not arrived
	served := ch.serves(st, s, n)
	if c.acquire.sent() && !c.queue.behind && served {
		request(deliverAcquire, 0)
	}
	if c.again && served {
		request(deliverAgain, 0)
	}
	hear(c.acquire, hearAcquire, doubtAcquire, 0)
	if ch.m.hasKind() {
		out = ch.shareMoves(i, n, c, out)
	}
	if ch.m.Waits {
		out = ch.queueMoves(st, i, n, out)
	}
	if c.acquire.stage == asked && s.life == asking && ch.tells(unsentAcquire, s, c) {
		out = append(out, move{kind: unsentAcquire, slot: i, node: n})
	}
	for k := range c.confirm {
		if c.confirm[k].sent() && !(ch.m.InOrder && before) {
			request(deliverConfirm, uint8(k))
		}
		before = before || c.confirm[k].sent()
		hear(c.confirm[k], hearConfirm, doubtConfirm, uint8(k))
	}
	late := ch.m.InOrder && before
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
	late = late || ch.m.InOrder && (c.extend.sent() || c.strays != [2]uint8{} || c.heals > 0)
	if c.release && !late && (c.key > 0 || !ch.m.reduces() && !ch.m.reducesShared()) {
		out = ch.releases(st, deliverRelease, i, n, out)
	}
	if c.bury && !late {
		out = ch.releases(st, deliverBury, i, n, out)
	}
	return out
}

// tells reports whether a machine is notified of an event. A late confirmation is more than
// a loss: it may change the token.
func (ch *choices) tells(kind moveKind, s *slot, c *cell) bool {
	if ch.m.EveryEvent {
		return true
	}
	switch kind {
	case tickAttempt:
		if ch.m.Waits || ch.m.hasSlots() {
			return true
		}
		for n := range ch.m.Nodes {
			for _, msg := range s.cells[n].confirm {
				if msg.awaited() {
					return true
				}
			}
		}
		return false
	case doubtConfirm:
		return true
	case doubtAcquire:
		return ch.m.Waits
	}
	return false
}

// arrivals are the steps of a release that arrives with the ACQUIRE of the next attempt.
func (ch *choices) arrivals(st *state, i, n uint8, out []move) []move {
	from := len(out)
	out = ch.releases(st, deliverReturn, st.slots[i].cells[n].queue.comes-1, n, out)
	for k := from; k < len(out); k++ {
		out[k].slot = i
	}
	return out
}

// queueMoves are the steps that waiting adds to those of one attempt at one node.
func (ch *choices) queueMoves(st *state, i, n uint8, out []move) []move {
	s := &st.slots[i]
	q := &s.cells[n].queue
	add := func(kind moveKind, arg uint8) {
		out = append(out, move{kind: kind, slot: i, node: n, arg: arg})
		if st.twice > 0 {
			out = append(out, move{kind: kind, slot: i, node: n, arg: arg, twice: true})
		}
	}
	for k, a := range q.strays {
		if a.stamp != 0 {
			add(deliverStrayAsk, uint8(k))
		}
	}
	if q.comes != 0 {
		out = ch.arrivals(st, i, n, out)
	}
	if s.life != asking {
		return out
	}
	for k, p := range q.pushes {
		if p.stamp != 0 {
			add(hearPush, uint8(k))
		}
	}
	if ch.m.Polls && !s.unclaimed && int(q.asks) < ch.m.Asks {
		out = append(out, move{kind: poll, slot: i, node: n})
	}
	return out
}

// releases appends the steps of a release that arrives: for which owner it is, and
// which waiter the node may take for dead.
func (ch *choices) releases(st *state, kind moveKind, i, n uint8, out []move) []move {
	q := &st.slots[i].cells[n].queue
	out = append(out, move{kind: kind, slot: i, node: n})
	if st.twice > 0 {
		out = append(out, move{kind: kind, slot: i, node: n, twice: true})
	}
	for j := range uint8(ch.m.Attempts) {
		switch {
		case j == i || st.slots[j].cells[n].queue.place == 0:
		case q.toSenior && st.before(j, i):
			out = append(out, move{kind: kind, slot: i, node: n, arg: (j + 1) << 4})
		case !q.gives && st.skips > 0:
			out = append(out, move{kind: kind, slot: i, node: n, arg: j + 1})
		}
	}
	return out
}
