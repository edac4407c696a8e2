package queues

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
	Did    Actions // on some path
	Ends   int     // states in which nothing more can happen
}

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// Search visits every state that m's world can reach, breadth first, until one breaks a
// property. A queue cannot be copied, so each state is reached anew from the beginning.
func Search(m Model) (r Result) {
	type print [2]uint64
	seen := map[print]bool{}
	level := [][]uint8{nil}
	for len(level) > 0 {
		var next [][]uint8
		for _, path := range level {
			w := replay(&m, path)
			moves := w.moves()
			if len(moves) == 0 {
				r.Ends++
				if r.Found = w.check(true); r.Found != "" {
					r.Trace = describe(&m, path)
					return r
				}
			}
			for i := range moves {
				if i > 0 {
					w = replay(&m, path)
				}
				w.moves()[i].do()
				r.Did |= w.did
				further := append(slices.Clip(path), uint8(i))
				if r.Found = w.check(false); r.Found != "" {
					r.Trace = describe(&m, further)
					return r
				}
				code := encode(w.state)
				at := print{maphash.Bytes(seeds[0], code), maphash.Bytes(seeds[1], code)}
				if !seen[at] {
					seen[at] = true
					r.States++
					next = append(next, further)
				}
			}
		}
		level = next
	}
	return r
}

// replay returns the world after these moves.
func replay(m *Model, path []uint8) *world {
	w := newWorld(m)
	for _, i := range path {
		w.moves()[i].do()
	}
	return w
}

// describe describes these moves, a line each.
func describe(m *Model, path []uint8) (lines []string) {
	w := newWorld(m)
	for _, i := range path {
		mv := w.moves()[i]
		lines = append(lines, w.who(mv)+mv.what)
		mv.do()
	}
	return lines
}

// who names the process and the goroutine of a move.
func (w *world) who(mv move) (who string) {
	if mv.p != nil {
		who = fmt.Sprintf("process %d: ", slices.Index(w.processes, mv.p)+1)
	}
	if mv.g != nil {
		who += fmt.Sprintf("goroutine %d: ", slices.Index(mv.p.goroutines, mv.g)+1)
	}
	return who
}
