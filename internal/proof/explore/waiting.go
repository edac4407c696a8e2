package explore

import (
	"slices"

	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// lineMoves are the steps that waiting adds to those of one attempt at one node.
func (w *walker) lineMoves(st *state, i, n uint8, out []move) []move {
	s := &st.slots[i]
	q := &s.cells[n].line
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
		out = w.arrivals(st, i, n, out)
	}
	if s.life != asking {
		return out
	}
	for k, p := range q.pushes {
		if p.stamp != 0 {
			add(hearPush, uint8(k))
		}
	}
	if w.m.Polls && !s.unclaimed && int(q.asks) < w.m.Asks {
		out = append(out, move{kind: poll, slot: i, node: n})
	}
	return out
}

// releases appends the steps of a release that arrives: for which owner it is, and
// which waiter the node may take for dead.
func (w *walker) releases(st *state, kind moveKind, i, n uint8, out []move) []move {
	q := &st.slots[i].cells[n].line
	out = append(out, move{kind: kind, slot: i, node: n})
	if st.twice > 0 {
		out = append(out, move{kind: kind, slot: i, node: n, twice: true})
	}
	for j := range uint8(w.m.Attempts) {
		switch {
		case j == i || st.slots[j].cells[n].line.place == 0:
		case q.toSenior && st.before(j, i):
			out = append(out, move{kind: kind, slot: i, node: n, arg: (j + 1) << 4})
		case !q.gives && st.skips > 0:
			out = append(out, move{kind: kind, slot: i, node: n, arg: j + 1})
		}
	}
	return out
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

// before reports whether slot i comes before slot j in every queue.
func (st *state) before(i, j uint8) bool {
	if a, b := st.slots[i].rank, st.slots[j].rank; a != b {
		return a < b
	}
	return i < j
}

// askAgain makes a waiting attempt ask a node. If it has asked as often as it may, it
// gets no answer any more.
func (w *walker) askAgain(s *slot, c *cell, stand bool) {
	if c.line.lost = int(c.line.asks) >= w.m.Asks; !c.line.lost {
		c.acquire = message{stage: asked}
		c.line.sent, c.line.stand = s.age, stand
		if w.m.Asks < unlimited {
			c.line.asks++
		}
	}
}

// deliveredInLine takes an executed request off the wire and puts the answer on
// it; false: it is not one of those that wait. senior says that the owner that has the
// lock comes before us.
func (c *cell) deliveredInLine(mv move, how stage, a *modelnode.Answer[uint8], said token, senior bool) bool {
	q := &c.line
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

// owners are what attempts call each other, by slot plus one.
var owners = [maxSlots + 1]string{"", "1", "2", "3", "4"}

// inLine completes the event that an answer to an ACQUIRE is, as drivers do.
func (w *walker) inLine(s *slot, q *queue, e quorum.Event) quorum.Event {
	if e.Kind != quorum.Yes && q.holder != 0 {
		e.Holder, e.ExpiresIn, e.Senior = owners[q.holder], ticks(int(q.lasts)), q.senior
	}
	e.RetryAfter = ticks(w.m.TTL) // it is asked again before that
	if q.behind {
		return w.returned(s, q, e)
	}
	return e
}

// hearInLine tells an attempt that waits what a node said.
func (w *walker) hearInLine(st *state, s *slot, mv move) {
	e := quorum.Event{Kind: quorum.PushLost, Node: int(mv.node)}
	if mv.kind == hearPush {
		q := &s.cells[mv.node].line
		p := q.pushes[mv.arg]
		e = quorum.Event{Kind: quorum.PushGranted, Node: int(mv.node), Token: w.m.number(p.token), From: at(p.stamp - 1)}
		if w.m.CountFromPush {
			e.From = at(s.age)
		}
		if !mv.twice {
			q.pushes[mv.arg] = push{}
		}
	}
	w.stepAsking(st, s, e)
}

// follow makes an attempt take the place of one that gave way, or come last, or first.
func (w *walker) follow(st *state, s *slot, first bool) {
	for i := range w.m.Attempts {
		before := &st.slots[i]
		if !before.gaveWay {
			continue
		}
		before.gaveWay, before.unclaimed = false, false
		s.rank, s.machine = before.rank, fresh+1
		for n := range w.m.Nodes {
			s.cells[n].line.stand = true
		}
		return
	}
	w.enter(st, s, first)
}

// enter gives an attempt its rank: the last, or the first.
func (w *walker) enter(st *state, s *slot, first bool) {
	for i := range w.m.Attempts {
		switch other := &st.slots[i]; {
		case other == s || other.life == unused:
		case first:
			other.rank++
		default:
			s.rank = max(s.rank, other.rank+1)
		}
	}
}

// closeRanks numbers the ranks of the attempts that are left from 0.
func closeRanks(slots []slot) {
	var ranks [maxSlots]uint8
	there := ranks[:0]
	for i := range slots {
		if s := &slots[i]; s.life != unused && !s.isGone() {
			there = append(there, s.rank)
		}
	}
	slices.Sort(there)
	there = slices.Compact(there)
	for i := range slots {
		if s := &slots[i]; s.life != unused && !s.isGone() {
			rank, _ := slices.BinarySearch(there, s.rank)
			s.rank = uint8(rank)
		}
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

// impatient makes an attempt leave that has waited for long enough.
func (w *walker) impatient(st *state, s *slot) {
	if w.m.Waits && s.life == asking && int(s.age) >= w.m.Patience {
		w.cancel(st, s)
	}
}

// settleLine forgets what cannot matter any more of a slot's place in node n's queue.
func (w *walker) settleLine(s *slot, n int) {
	c := &s.cells[n]
	q := &c.line
	if s.life != asking { // its stamps mean nothing to anybody
		q.answered()
		q.asks, q.stamp, q.pushes, q.behind, q.none = 0, 0, [2]push{}, false, false
		for k := range q.strays {
			if w.m.MaxDelay == 0 {
				q.strays[k].stamp = min(q.strays[k].stamp, 1)
			}
		}
	}
	if !c.release && !c.bury || w.reducesInQueue() {
		if q.always = false; !c.release && !c.bury {
			q.gives, q.toSenior = false, false
		}
	}
	if w.m.MaxDelay > 0 { // what does not arrive any more
		for k, a := range q.strays {
			if a.stamp != 0 && int(s.age) > int(a.stamp)-1+w.m.MaxDelay {
				q.strays[k] = ask{}
			}
		}
		if q.comes != 0 && int(s.age) > w.m.MaxDelay {
			q.comes, q.renewed = 0, false
		}
		if c.acquire.stage == asked && int(s.age) > int(q.sent)+w.m.MaxDelay {
			c.acquire = message{}
			q.answered()
		}
	}
	for k, p := range q.pushes { // their validity is over
		if p.stamp != 0 && int(s.age) >= int(p.stamp)-1+w.m.TTL && !w.m.EveryEvent && !w.m.CountFromPush {
			q.pushes[k] = push{}
		}
	}
	q.sort()
}

// checkLine checks a node after a step: no owner that was released there may have the
// lock or a place.
func (w *walker) checkLine(st *state, n uint8, before, after *modelnode.Lock[uint8]) {
	for i := range w.m.Attempts {
		o := uint8(i) + 1
		if !st.slots[i].cells[n].freed {
			continue
		}
		if after.Owner == o && before.Owner != o || waits(after, o) && !waits(before, o) {
			w.broke(Orphans)
		}
	}
}

// checkFreed looks at a node that has just released an owner: it has nothing of it.
func (w *walker) checkFreed(l *modelnode.Lock[uint8], owner uint8) {
	if l.Owner == owner || waits(l, owner) {
		w.broke(Orphans)
	}
}

func waits(l *modelnode.Lock[uint8], o uint8) bool {
	return slices.ContainsFunc(l.Line, func(p modelnode.Place[uint8]) bool { return p.Owner == o })
}

// mayHand reports whether a release of slot i at node n may hand the lock to another
// waiter.
func (w *walker) mayHand(st *state, i, n int) bool {
	for j := range w.m.Attempts {
		s := &st.slots[j]
		if j != i && (s.life == asking || s.life == unused || s.cells[n].line.place > 0) {
			return true
		}
	}
	return false
}
