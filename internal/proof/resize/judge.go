package resize

import "slices"

// world is a model that is searched, and what the last step has broken.
type world struct {
	Model
	broken Property
}

// broke records that p is broken.
func (w *world) broke(p Property) { w.broken = p }

// judge looks at a lease that was just granted.
func (w *world) judge(st *state, i int) {
	l := &st.leases[i]
	holders, most := 0, 0
	for k := range st.leases {
		if o := &st.leases[k]; o.life == holding {
			if holders++; k != i && o.slot == l.slot {
				w.broke(Slots)
			}
		}
	}
	for n := range 8 {
		if l.allowed&(1<<n) != 0 {
			most = n
		}
	}
	switch {
	case l.allowed == anyNumber:
	case l.allowed&(1<<w.Asks[i]) == 0:
		w.broke(Numbers)
	case holders > most:
		w.broke(Holders)
	}
	l.allowed = 0
}

// resized notes which numbers are legitimate once resize j has worked: those that nodes have
// been set to last, and those of resizes that may still work.
func (w *world) resized(st *state, j int) {
	st.legitimate = 0
	set := [maxResizers + 1]bool{}
	for n := range st.nodes {
		if k := st.nodes[n].setter; k > 0 {
			st.legitimate |= 1 << w.Resizes[k-1][1]
			set[k] = true
		}
	}
	for k := range st.resizes {
		switch z := &st.resizes[k]; {
		case k == j:
		case (z.phase == setting || z.phase == mayFailed) && st.maySet(k):
			st.legitimate |= 1 << w.Resizes[k][1]
		case z.phase == worked && set[k+1] && set[j+1]:
			w.broke(Split)
		}
	}
}

// maySet reports whether a node may still set the number for resize k.
func (st *state) maySet(k int) bool {
	for n := range st.nodes {
		if nd := &st.nodes[n]; nd.resizes[k].set == asked && nd.seat.who == uint8(k)+1 {
			return true
		}
	}
	return false
}

// allow gives the attempts under way what is legitimate now.
func (st *state) allow() {
	for i := range st.leases {
		if st.leases[i].life == asking {
			st.leases[i].allowed |= st.legitimate
		}
	}
}

// settle notes that the lock has no number any more if nobody holds it.
func (st *state) settle() {
	for i := range st.leases {
		if st.leases[i].life == holding {
			return
		}
	}
	st.legitimate = anyNumber
	st.allow()
}

// done reports whether nothing will be judged any more: no attempt and no renewal is left, or
// every grant is legitimate from now on.
func (m *Model) done(st *state) bool {
	grants, opens, sets := false, false, false
	for i := range st.leases {
		l := &st.leases[i]
		grants = grants || l.life == unused && m.Asks[i] > 0 || l.life == asking
		if slices.Contains(m.Check, Renewed) && l.life == holding {
			grants = grants || l.renewing || l.renewals < m.Renewals
		}
	}
	for j := range st.resizes {
		opens = opens || st.resizes[j].phase <= setting && m.Resizes[j][0] > 0
		for n := range st.nodes {
			sets = sets || st.nodes[n].resizes[j].set == asked
		}
	}
	if slices.Contains(m.Check, Ended) && (opens || sets) {
		return false
	}
	return !grants || !opens && st.legitimate == anyNumber
}
