package explore

import "hash/maphash"

// How long whoever waits may take to get the lock, once nothing goes wrong.
const (
	fairTicks = 16
	fairSteps = 4000
	unlimited = 1<<8 - 1
)

var fairSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// fairWorld is m's with nothing in it that can go wrong, and nobody who has
// enough of waiting.
func fairWorld(m *Model) *Model {
	f := *m
	f.Attempts, f.Asks, f.Patience = maxSlots, unlimited, unlimited
	f.Check, f.Plain = 0, false
	return &f
}

// served says whether everybody who waits gets the lock, if from st on nothing
// goes wrong: every message arrives, timers fire, holders release at once, and
// whoever gave way comes again. One such course of things is looked at, as far as
// one that is known to end well.
func (w *walker) served(st state) bool {
	st.twice, st.doubts, st.skips, st.crashes, st.losses, st.jumps = 0, 0, 0, 0, 0, 0
	if w.fair == nil {
		w.fair, w.wellFrom = newWalker(fairWorld(w.m), w.machines), map[print]bool{}
	}
	f := w.fair
	for i := f.m.Attempts - 1; i >= 0 && st.slots[i].life == unused; i-- {
		st.slots[i] = slot{life: over, released: true}
	}
	for i := range st.slots {
		for n := range st.slots[i].cells {
			st.slots[i].cells[n].line.asks = 0
		}
	}
	passed := 0
	w.course = w.course[:0]
	for range fairSteps {
		here := print{maphash.Comparable(fairSeeds[0], st), maphash.Comparable(fairSeeds[1], st)}
		if w.wellFrom[here] || f.nobodyWaits(&st) {
			for _, p := range w.course {
				w.wellFrom[p] = true
			}
			return true
		}
		w.course = append(w.course, here)
		if f.fairStep(&st) {
			continue
		}
		if passed++; passed > fairTicks {
			return false
		}
		f.apply(&st, move{kind: pass})
	}
	return false
}

func (w *walker) nobodyWaits(st *state) bool {
	for i := range w.m.Attempts {
		if s := &st.slots[i]; s.life == asking || s.gaveWay {
			return false
		}
	}
	return true
}

// fairStep takes one step of those that are due at this instant; false: there is
// none left.
func (w *walker) fairStep(st *state) bool {
	for i := range w.m.Attempts {
		if !st.slots[i].gaveWay {
			continue
		}
		for j := range w.m.Attempts {
			if s := &st.slots[j]; s.isGone() {
				w.apply(st, move{kind: begin, slot: uint8(j)})
				return true
			}
		}
	}
	for i := range w.m.Attempts {
		for n := range w.m.Nodes {
			if s := &st.slots[i]; s.life == asking && s.cells[n].line.lost {
				w.apply(st, move{kind: doubtAcquire, slot: uint8(i), node: uint8(n)})
				return true
			}
		}
	}
	before := *st
	w.due = w.due[:0]
	for i := range w.m.Attempts {
		w.due = w.slotMoves(&before, uint8(i), w.due)
	}
	for _, mv := range w.due {
		switch mv.kind {
		case doubtAcquire, doubtConfirm, doubtExtend, unsentAcquire, cancelAttempt, cancelVote, renew, poll:
			continue
		}
		if w.apply(st, mv); *st != before {
			return true
		}
	}
	return false
}
