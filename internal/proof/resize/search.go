package resize

import (
	"fmt"
	"hash/maphash"
	"slices"
)

// Result is the outcome of a search.
type Result struct {
	Found  Property // that broke first; empty: none
	Trace  []string // what happened until then
	States int
}

// link is a state, and which one it follows.
type link struct {
	from  int
	state state
}

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// Search visits every state that m's world can reach, breadth first, until one breaks a
// property.
func Search(m Model) (r Result) {
	w := world{Model: m}
	type print [2]uint64
	hash := func(st state) print {
		for n := range st.nodes {
			st.nodes[n].name = 0
		}
		return print{maphash.Comparable(seeds[0], st), maphash.Comparable(seeds[1], st)}
	}
	list := []link{{-1, m.begin()}}
	seen := map[print]bool{}
	for k := 0; k < len(list) && r.Found == ""; k++ {
		st := list[k].state
		if m.done(&st) {
			continue
		}
		w.next(&st, func(to state, what func() string) {
			if w.broken != "" && r.Found == "" {
				r.Found = w.broken
				r.Trace = append(w.trace(list, k), what())
			}
			if at := hash(to); !seen[at] {
				seen[at] = true
				list = append(list, link{k, to})
			}
		})
	}
	r.States = len(list)
	return r
}

// next calls f with every state that can follow.
func (w *world) next(st *state, f func(to state, what func() string)) {
	try := func(what func() string, change func(*state)) {
		to := *st
		w.broken = ""
		change(&to)
		for i := range to.leases {
			if to.leases[i].life == holding && st.leases[i].life == asking {
				w.judge(&to, i)
			}
		}
		to.settle()
		w.canonical(&to)
		f(to, what)
	}
	for i := range st.leases {
		w.clients(st, i, try)
		for n := range st.nodes {
			if st.nodes[n].quarantined == 0 {
				w.deliver(st, i, n, try)
			}
		}
	}
	for j := range st.resizes {
		w.resizers(st, j, try)
	}
	for n := range st.nodes {
		if st.crashes > 0 {
			try(func() string { return fmt.Sprintf("node %d crashes", st.nodes[n].name) }, func(st *state) {
				st.crashes--
				st.nodes[n].crash(w.Quarantine)
			})
		}
	}
	try(func() string { return "a tick passes" }, func(st *state) {
		for n := range st.nodes {
			st.nodes[n].pass()
		}
		w.passClients(st)
		w.passResizes(st)
	})
}

// canonical drops what can matter to nobody any more, and orders the nodes.
func (m *Model) canonical(st *state) {
	m.hopeless(st)
	for j := range st.resizes {
		sets := st.resizes[j].phase <= setting
		for n := range st.nodes {
			sets = sets || st.nodes[n].resizes[j].set == asked
		}
		if !sets {
			st.resizes[j].age = 0
		}
	}
	slices.SortStableFunc(st.nodes[:], func(a, b node) int { return slices.Compare(a.code(), b.code()) })
}

// code orders nodes.
func (nd *node) code() []byte {
	hasSet := byte(0)
	if nd.seat.hasSet {
		hasSet = 1
	}
	b := append(make([]byte, 0, 64), hasSet, nd.quarantined, nd.number, nd.kept, nd.setter, nd.seat.who, nd.seatFor)
	for i := range nd.cells {
		c := &nd.cells[i]
		b = append(b, c.key, c.slot, c.tombstone, byte(c.acquire), c.granted, byte(c.extend), c.own, c.numbers, c.heal)
	}
	for j := range nd.resizes {
		b = append(b, byte(nd.resizes[j].seat), byte(nd.resizes[j].set))
	}
	return b
}

// trace describes the steps that lead to the state, a line each.
func (w *world) trace(list []link, k int) (lines []string) {
	for list[k].from >= 0 {
		from, found := list[k].from, false
		w.next(&list[from].state, func(to state, what func() string) {
			if !found && to == list[k].state {
				found, lines = true, append(lines, what())
			}
		})
		k = from
	}
	slices.Reverse(lines)
	return lines
}
