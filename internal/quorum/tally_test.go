package quorum

import (
	"testing"
	"time"
)

// A lease is held if a majority has it, and undecided if that depends on silent nodes. It lasts
// until the nodes that have it and the silent nodes together are no majority.
func TestTally(t *testing.T) {
	three, five := Config{Nodes: 3}, Config{Nodes: 5}
	joint := Config{Nodes: 5, Sets: [2]Set{SetOf(0, 1, 2), SetOf(2, 3, 4)}}
	const s, ever = time.Second, time.Duration(-1)
	for _, c := range []struct {
		name        string
		c           Config
		has, silent Set
		expiresIn   []time.Duration
		want        Tally
	}{
		{"nobody has it", three, 0, 0, []time.Duration{0, 0, 0}, Tally{}},
		{"nobody has it, and one is silent", three, 0, SetOf(2), []time.Duration{0, 0, 0}, Tally{}},
		{"on all", three, SetOf(0, 1, 2), 0, []time.Duration{3 * s, 9 * s, 6 * s},
			Tally{Held: true, Nodes: SetOf(0, 1, 2), Need: 2, ExpiresIn: 6 * s}},
		{"on one of three", three, SetOf(0), 0, []time.Duration{9 * s, 0, 0}, Tally{}},
		{"on one, and one is silent", three, SetOf(0), SetOf(2), []time.Duration{9 * s, 0, 0},
			Tally{Undecided: true, Nodes: SetOf(0), Need: 2, ExpiresIn: 9 * s}},
		{"on two, and the silent one may have it for longer than the second", three, SetOf(0, 1), SetOf(2), []time.Duration{9 * s, 3 * s, 0},
			Tally{Held: true, Nodes: SetOf(0, 1), Need: 2, ExpiresIn: 9 * s}},
		{"for ever on one", three, SetOf(0, 1), 0, []time.Duration{ever, 3 * s, 0},
			Tally{Held: true, Nodes: SetOf(0, 1), Need: 2, ExpiresIn: 3 * s}},
		{"for ever on the one that answers", three, SetOf(0), SetOf(1), []time.Duration{ever, 0, 0},
			Tally{Undecided: true, Nodes: SetOf(0), Need: 2, ExpiresIn: ever}},
		{"on one of five, and two are silent", five, SetOf(0), SetOf(3, 4), []time.Duration{9 * s, 0, 0, 0, 0},
			Tally{Undecided: true, Nodes: SetOf(0), Need: 3, ExpiresIn: 9 * s}},
		{"on one of five, and one is silent", five, SetOf(0), SetOf(4), []time.Duration{9 * s, 0, 0, 0, 0}, Tally{}},
		{"on two of five, and one is silent", five, SetOf(0, 1), SetOf(4), []time.Duration{9 * s, 3 * s, 0, 0, 0},
			Tally{Undecided: true, Nodes: SetOf(0, 1), Need: 3, ExpiresIn: 3 * s}},
		{"on three of five, and two are silent", five, SetOf(0, 1, 2), SetOf(3, 4), []time.Duration{5 * s, 9 * s, 3 * s, 0, 0},
			Tally{Held: true, Nodes: SetOf(0, 1, 2), Need: 3, ExpiresIn: 9 * s}},
		{"half of an even number", Config{Nodes: 4}, SetOf(0, 1), 0, []time.Duration{9 * s, 9 * s, 0, 0}, Tally{}},
		{"in the second membership", joint, SetOf(0, 3, 4), 0, []time.Duration{9 * s, 0, 0, 5 * s, 4 * s},
			Tally{Held: true, Nodes: SetOf(3, 4), Need: 2, ExpiresIn: 4 * s}},
		{"undecided in the first membership and held in the second", joint, SetOf(0, 3, 4), SetOf(1), []time.Duration{9 * s, 0, 0, 5 * s, 4 * s},
			Tally{Held: true, Nodes: SetOf(3, 4), Need: 2, ExpiresIn: 9 * s}},
		{"held in the first membership and undecided in the second", joint, SetOf(0, 1, 3), SetOf(4), []time.Duration{5 * s, 4 * s, 0, 9 * s, 0},
			Tally{Held: true, Nodes: SetOf(0, 1), Need: 2, ExpiresIn: 9 * s}},
		{"undecided in the second membership only", joint, SetOf(0, 3), SetOf(4), []time.Duration{9 * s, 0, 0, 5 * s, 0},
			Tally{Undecided: true, Nodes: SetOf(3), Need: 2, ExpiresIn: 5 * s}},
	} {
		if got := c.c.Tally(c.has, c.silent, c.expiresIn); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
