package explore

import "hash/maphash"

// The bounds of how long a waiter may take to get the lock once nothing goes wrong.
const (
	fairTicks = 16
	fairSteps = 4000
)

var fairSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// fairWorld returns m's world without faults and without impatient waiters.
func fairWorld(m *Model) *Model {
	f := *m
	f.Attempts, f.Asks, f.Patience = maxSlots, unlimited, unlimited
	f.Check, f.Plain = 0, false
	return &f
}

// fairStart returns st in that world.
func (m *Model) fairStart(st *state) {
	st.twice, st.doubts, st.skips, st.crashes, st.losses, st.jumps = 0, 0, 0, 0, 0, 0
	for i := range st.slots {
		s := &st.slots[i]
		if s.life == unused || i >= m.Attempts {
			*s = slot{life: over, released: true}
		}
		for n := range s.cells {
			s.cells[n].queue.asks = 0
		}
	}
}

// served reports whether every waiter gets the lock if nothing goes wrong from st on:
// every message arrives, timers fire, holders release at once, and attempts that gave
// way come again. It follows one such continuation, up to a state that is known to end
// well.
func (w *future) served(st state) bool {
	w.m.fairStart(&st)
	passed := 0
	w.course = w.course[:0]
	for range fairSteps {
		here := print{maphash.Comparable(fairSeeds[0], st), maphash.Comparable(fairSeeds[1], st)}
		if w.wellFrom[here] || w.fair.nobodyWaits(&st) {
			for _, p := range w.course {
				w.wellFrom[p] = true
			}
			return true
		}
		w.course = append(w.course, here)
		if mv := w.fair.step(&st); mv.kind == pass {
			if passed++; passed > fairTicks {
				return false
			}
		}
	}
	return false
}

// continuation is a walk in which nothing goes wrong.
type continuation struct {
	*walker
	due []move
}

// continued returns such a walk in m's world.
func continued(m *Model, ms *machines) *continuation {
	return &continuation{walker: newWalker(fairWorld(m), ms)}
}

func (w *continuation) nobodyWaits(st *state) bool {
	for i := range w.m.Attempts {
		if s := &st.slots[i]; s.life == asking || s.gaveWay {
			return false
		}
	}
	return true
}

// step takes one of the steps that are due, or lets time pass if there is none.
func (w *continuation) step(st *state) move {
	before := *st
	w.due = w.due[:0]
	for i := range uint8(w.m.Attempts) {
		s := &before.slots[i]
		if s.isGone() && before.gaveWay() && !before.awaits(i) {
			w.due = append(w.due, move{kind: begin, slot: i})
		}
		for n := range uint8(w.m.Nodes) {
			if s.life == asking && s.cells[n].queue.lost {
				w.due = append(w.due, move{kind: doubtAcquire, slot: i, node: n})
			}
		}
		from := len(w.due)
		w.due = w.choices.slotMoves(&before, i, w.due)
		to := from
		for _, mv := range w.due[from:] {
			switch mv.kind {
			case doubtAcquire, doubtConfirm, doubtExtend, unsentAcquire, cancelAttempt, cancelVote, renew, poll:
			default:
				w.due[to] = mv
				to++
			}
		}
		w.due = w.due[:to]
	}
	for _, mv := range w.due {
		if w.apply(st, mv); *st != before {
			return mv
		}
	}
	mv := move{kind: pass}
	w.apply(st, mv)
	return mv
}

// gaveWay reports whether an attempt that gave way has not come again yet.
func (st *state) gaveWay() bool {
	for i := range st.slots {
		if st.slots[i].gaveWay {
			return true
		}
	}
	return false
}

// future checks what must happen after a state.
type future struct {
	*walker
	fair *continuation
	// For served: states from which all waiters are served, and those on the way.
	wellFrom map[print]bool
	course   []print
	due      []move
}

func newFuture(w *walker) *future {
	return &future{walker: w, fair: continued(w.m, w.machines), wellFrom: map[print]bool{}}
}

// checkFuture checks what must happen after a state.
func (w *future) checkFuture(st *state) {
	if w.m.Check&Served != 0 && !w.served(*st) {
		w.broke(Served)
	}
	if w.m.Check&Whole != 0 && !w.whole(*st) {
		w.broke(Whole)
	}
}

// whole reports whether no slot stays split, from st on: once every message that is
// under way has arrived and every lease was renewed once more, a node has nothing but the
// slots of leases. And attempts that nobody else disturbs do not all fail.
func (w *future) whole(st state) bool {
	answer, granted, actions := w.nodes.answer, w.granted, w.actions
	defer func() { w.nodes.answer, w.granted, w.actions = answer, granted, actions }()
	alone := w.undisturbed(&st)
	w.noFaults(&st)
	w.settleDown(&st)
	if alone && !w.anyHolds(&st) {
		return false
	}
	for i := range w.m.Attempts {
		if s := &st.slots[i]; s.life == holding && s.vote == 0 && w.valid(s) {
			w.leases.renew(s, false)
		}
	}
	w.settleDown(&st)
	for i := range w.m.Attempts {
		s := &st.slots[i]
		for n := range w.m.Nodes {
			if c := &s.cells[n]; c.key > 0 && (s.life != holding || c.share.slot != s.agreed) {
				return false
			}
		}
	}
	return true
}

// undisturbed reports whether there are attempts that were begun just now and nothing is
// left of others. If there were others, these attempts must not know of them.
func (w *future) undisturbed(st *state) bool {
	asks, gone, heard := 0, false, false
	for i := range w.m.Attempts {
		switch s := &st.slots[i]; {
		case s.life == asking && s.age == 0:
			asks++
			heard = heard || w.knowsOfOthers(s)
		case s.life != unused && !s.isGone():
			return false
		default:
			gone = gone || s.life != unused
		}
	}
	return asks > 0 && !(gone && heard)
}

// knowsOfOthers reports whether a node refused the attempt, or it has heard an answer.
func (w *future) knowsOfOthers(s *slot) bool {
	for n := range w.m.Nodes {
		c := &s.cells[n]
		if !(c.acquire.stage == asked || c.acquire.stage == saidYes && c.key > 0) {
			return true
		}
	}
	return false
}

// anyHolds reports whether there is a lease.
func (w *future) anyHolds(st *state) bool {
	for i := range w.m.Attempts {
		if st.slots[i].life == holding {
			return true
		}
	}
	return false
}

// noFaults takes away what could still go wrong.
func (w *future) noFaults(st *state) {
	st.crashes, st.losses, st.jumps, st.twice = 0, 0, 0, 0
	for n := range w.m.Nodes {
		st.nodes[n].quarantined = 0
	}
}

// settleDown lets every message arrive, and time stand still.
func (w *future) settleDown(st *state) {
	broken := w.broken
	for {
		w.due = w.due[:0]
		for i := range w.m.Attempts {
			if st.slots[i].life == unused {
				continue
			}
			for n := range w.m.Nodes {
				w.due = w.choices.cellMoves(st, uint8(i), uint8(n), w.due)
			}
		}
		next := -1
		for i, mv := range w.due {
			if arrives(mv.kind) {
				next = i
				break
			}
		}
		if next < 0 {
			w.broken = broken
			return
		}
		w.apply(st, w.due[next])
	}
}

// arrives reports whether it is a message that a node or a client gets.
func arrives(kind moveKind) bool {
	switch kind {
	case doubtAcquire, doubtConfirm, doubtExtend, unsentAcquire:
		return false
	}
	return kind >= deliverAcquire && kind <= hearPush
}
