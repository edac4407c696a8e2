package explore

// checkFuture looks at what must come of a state.
func (w *walker) checkFuture(st *state) {
	if w.m.Check&Served != 0 && !w.served(*st) {
		w.broke(Served)
	}
	if w.m.Check&Whole != 0 && !w.whole(*st) {
		w.broke(Whole)
	}
}

// whole reports whether no slot is split for good, from st on: once every message that is
// under way has arrived and every lease was renewed once more, a node has nothing but the
// slots of leases. And attempts that nobody else disturbs do not all fail.
func (w *walker) whole(st state) bool {
	answer, granted, actions := w.answer, w.granted, w.actions
	defer func() { w.answer, w.granted, w.actions = answer, granted, actions }()
	alone := w.undisturbed(&st)
	w.noFaults(&st)
	w.settleDown(&st)
	if alone && !w.anyHolds(&st) {
		return false
	}
	for i := range w.m.Attempts {
		if s := &st.slots[i]; s.life == holding && s.vote == 0 && w.valid(s) {
			w.renew(s, false)
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
// left of others. If there were others, these attempts must not have heard of them.
func (w *walker) undisturbed(st *state) bool {
	asks, gone, heard := 0, false, false
	for i := range w.m.Attempts {
		switch s := &st.slots[i]; {
		case s.life == asking && s.age == 0:
			asks++
			heard = heard || w.heardOfOthers(s)
		case s.life != unused && !s.isGone():
			return false
		default:
			gone = gone || s.life != unused
		}
	}
	return asks > 0 && !(gone && heard)
}

// heardOfOthers reports whether a node refused the attempt, or it has heard an answer.
func (w *walker) heardOfOthers(s *slot) bool {
	for n := range w.m.Nodes {
		c := &s.cells[n]
		if !(c.acquire.stage == asked || c.acquire.stage == saidYes && c.key > 0) {
			return true
		}
	}
	return false
}

// anyHolds reports whether there is a lease.
func (w *walker) anyHolds(st *state) bool {
	for i := range w.m.Attempts {
		if st.slots[i].life == holding {
			return true
		}
	}
	return false
}

// noFaults takes away what could still go wrong.
func (w *walker) noFaults(st *state) {
	st.crashes, st.losses, st.jumps, st.twice = 0, 0, 0, 0
	for n := range w.m.Nodes {
		st.nodes[n].shut = 0
	}
}

// settleDown lets every message arrive, and time stand still.
func (w *walker) settleDown(st *state) {
	broken := w.broken
	for {
		w.due = w.due[:0]
		for i := range w.m.Attempts {
			if st.slots[i].life == unused {
				continue
			}
			for n := range w.m.Nodes {
				w.due = w.cellMoves(st, uint8(i), uint8(n), w.due)
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
