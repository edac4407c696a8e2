package resize

import (
	"fmt"
	"slices"
)

// resizers tries the steps of a resize, which can end after each.
func (w *world) resizers(st *state, j int, try tryFunc) {
	by := w.seat(j)
	if by.from == 0 {
		return
	}
	who := fmt.Sprintf("resize %d", j+1)
	z := &st.resizes[j]
	var seats, sets [saidNo + 1]int
	for n := range st.nodes {
		seats[st.nodes[n].resizes[j].seat]++
		sets[st.nodes[n].resizes[j].set]++
	}
	enough := func(n int) bool { return n == maxNodes || w.Off.All && n > maxNodes/2 }
	switch {
	case z.phase == waiting:
		try(func() string { return fmt.Sprintf("%s from %d to %d begins", who, by.from, by.to) }, func(st *state) {
			st.resizes[j].phase = seating
			for n := range st.nodes {
				st.nodes[n].resizes[j].seat = asked
			}
		})
	case z.phase == seating && seats[saidNo] > 0:
		try(func() string { return who + " fails" }, func(st *state) { st.endResize(j, failed) })
	case z.phase == seating && enough(seats[saidYes]):
		try(func() string { return fmt.Sprintf("%s has the seats, and asks to set %d permits", who, by.to) }, func(st *state) {
			st.resizes[j].phase, st.resizes[j].age = setting, 0
			st.legitimate |= 1 << by.to
			for n := range st.nodes {
				st.nodes[n].resizes[j] = asks{set: asked} // all have answered to SEAT
			}
			st.allow()
		})
	case z.phase == setting && sets[saidNo] > 0:
		try(func() string { return who + " fails, and may have worked" }, func(st *state) { st.endResize(j, mayFailed) })
	case z.phase == setting && enough(sets[saidYes]):
		try(func() string { return who + " has worked" }, func(st *state) {
			st.endResize(j, worked)
			w.resized(st, j)
		})
	}
	for n := range st.nodes {
		if nd := &st.nodes[n]; nd.quarantined == 0 {
			w.deliverResize(nd, j, n, try)
		}
	}
}

// deliverResize tries the messages of a resize that node n can execute.
func (w *world) deliverResize(nd *node, j, n int, try tryFunc) {
	run := func(what string, f func(st *state, s *semaphore, a *asks)) {
		try(func() string { return fmt.Sprintf("node %d executes %s of resize %d", nd.name, what, j+1) }, func(st *state) {
			nd := &st.nodes[n]
			s := nd.semaphore()
			f(st, &s, &nd.resizes[j])
			nd.keep(&s)
		})
	}
	if nd.resizes[j].seat == asked {
		run("SEAT", func(st *state, s *semaphore, a *asks) {
			if a.seat = saidNo; s.takeSeat(w.seat(j), ticks(w.seatTTL())) {
				a.seat = saidYes
			}
			if st.resizes[j].phase != seating {
				a.seat = idle
			}
		})
	}
	if nd.resizes[j].set == asked {
		run("SET", func(st *state, s *semaphore, a *asks) {
			z := &st.resizes[j]
			did := s.set(w.seat(j), ticks(w.seatTTL()), ticks(w.Keep), w.Off)
			if a.set = saidNo; did {
				a.set = saidYes
			}
			if z.phase != setting {
				if a.set = idle; did && z.age > w.seatTTL() && slices.Contains(w.Check, Ended) {
					w.broke(Ended)
				}
			}
		})
	}
}

// endResize ends a resize. What it has asked nodes stays under way.
func (st *state) endResize(j int, p phase) {
	st.resizes[j].phase, st.resizes[j].age = p, 0
	for n := range st.nodes {
		a := &st.nodes[n].resizes[j]
		if a.seat != asked {
			a.seat = idle
		}
		if a.set != asked {
			a.set = idle
		}
	}
}

// passResizes lets a tick pass for those that resize: they wait no longer than that for the
// answers to what they asked nodes to set.
func (m *Model) passResizes(st *state) {
	for j := range st.resizes {
		switch z := &st.resizes[j]; {
		case z.phase == setting && !m.Off.Timely:
			st.endResize(j, mayFailed)
		case z.phase > setting:
			z.age = min(z.age+1, m.seatTTL()+1)
		}
	}
}
