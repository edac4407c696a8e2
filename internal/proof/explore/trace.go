package explore

import (
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
)

// trace describes a path that the search found, step by step. The search knows states
// only up to a permutation of nodes and attempts; a trace walks the path again with
// names that stay.
type trace struct {
	*walker
	before, after state
	names         [maxSlots]string // of attempts and their leases: A1, B1, A2
	tokens        [maxSlots]token  // of leases
	now           int              // ticks since the beginning
	lines         []string
}

func newTrace(m *Model, ms *machines) *trace {
	return &trace{walker: newWalker(m, ms)}
}

// tell follows the fingerprints, and then takes the step that breaks a property.
func (t *trace) tell(path []print) []string {
	for _, st := range t.initial() {
		if t.print(st) == path[0] {
			t.after = st
		}
	}
	if t.m.Begun {
		t.names = [maxSlots]string{"A1", "B1"}
		t.lines = append(t.lines, "[0] at first, A1 has the lock and B1 waits in the queue")
	}
	if t.m.Full {
		t.names = [maxSlots]string{"A1", "B1"}
		t.tokens[0], t.tokens[1] = t.after.slots[0].token, t.after.slots[1].token
		t.lines = append(t.lines, "[0] at first, A1 and B1 have the slots 0 and 1")
	}
	if t.m.Crossed {
		t.names = [maxSlots]string{"A1", "B1"}
		t.tokens[1] = t.after.slots[1].token
		t.lines = append(t.lines, "[0] at first, A1 is over, and B1 has a lease of slot 0, and slot 1 at node 1")
	}
	if t.m.Wrote {
		t.lines = append(t.lines, "[0] at first, a writer's lease with token 1 is over")
	}
	t.opening()
	for _, want := range path[1:] {
		t.step(func() bool { return t.broken == 0 && t.print(t.after) == want })
	}
	future := newFuture(t.walker)
	t.step(func() bool {
		if t.broken == 0 {
			st := t.after
			t.canonicalizer.canonical(&st)
			future.checkFuture(&st)
		}
		return t.broken != 0
	})
	if t.broken&Served != 0 {
		t.goOn(24)
	}
	return t.lines
}

func (t *trace) print(st state) print {
	t.canonicalizer.canonical(&st)
	return fingerprint(t.m.encode(&st, nil))
}

// step takes the first step that leads to the fingerprint, and describes it.
func (t *trace) step(right func() bool) {
	t.before = t.after
	for _, mv := range t.choices.moves(&t.before, nil) {
		t.after = t.before
		t.granted, t.nodes.answer = 0, modelnode.Answer[uint8]{}
		if t.apply(&t.after, mv); right() {
			t.note(mv)
			return
		}
	}
	panic("explore: no step leads to the next fingerprint of a path")
}

// note adds the line for a step.
func (t *trace) note(mv move) {
	switch mv.kind {
	case begin:
		t.name(mv.slot)
	case rejoin:
		t.names[mv.slot] = t.next(rune(t.names[mv.arg>>1][0]))
	}
	line := t.action(mv)
	if t.granted != 0 {
		t.tokens[mv.slot] = t.granted
	}
	if mv.kind == pass {
		t.now++
	}
	for _, effect := range t.effects(mv) {
		line += "; " + effect
	}
	if t.broken != 0 {
		line += ". " + t.verdict(mv)
	}
	t.lines = append(t.lines, fmt.Sprintf("[%d] %s", t.now, line))
}

// opening describes the initial state, if it is not all zero.
func (t *trace) opening() {
	var parts []string
	for n := range t.m.Nodes {
		nd := t.after.nodes[n]
		if nd.counter != 0 {
			parts = append(parts, fmt.Sprintf("node %d's counter stands at %s", n+1, t.token(nd.counter)))
		}
		if nd.ahead != 0 {
			parts = append(parts, fmt.Sprintf("node %d's clock is %s ahead", n+1, span(nd.ahead)))
		}
	}
	if len(parts) > 0 {
		t.lines = append(t.lines, "[0] at first, "+strings.Join(parts, ", "))
	}
}

// name gives an attempt to the first client that is free.
func (t *trace) name(slot uint8) {
	if t.m.ReuseOwner {
		client := slot % uint8(t.m.Clients)
		t.names[slot] = fmt.Sprintf("%c%d", 'A'+client, slot/uint8(t.m.Clients)+1)
		return
	}
	for client := 'A'; ; client++ {
		busy := false
		for i := range t.m.Attempts {
			if s := &t.before.slots[i]; strings.HasPrefix(t.names[i], string(client)) {
				busy = busy || s.life == asking || s.life == holding && t.valid(s)
			}
		}
		if !busy {
			t.names[slot] = t.next(client)
			return
		}
	}
}

// next is the name of a client's next attempt.
func (t *trace) next(client rune) string {
	count := 1
	for _, name := range t.names {
		if strings.HasPrefix(name, string(client)) {
			count++
		}
	}
	return fmt.Sprintf("%c%d", client, count)
}

// token returns a token as text. A token that was drawn from a clock is a time: ticks since the
// beginning, and a small rest.
func (t *trace) token(k token) string {
	number := t.m.number(k)
	if !t.m.Floor {
		return fmt.Sprint(number)
	}
	return fmt.Sprintf("%d.%06d", int(number/microsPerTick)-int(epochMicros/microsPerTick)+t.now, number%microsPerTick)
}

func span[T uint8 | int](n T) string {
	if n == 1 {
		return "1 tick"
	}
	return fmt.Sprintf("%d ticks", n)
}

// list returns node numbers as text.
func list(nodes []int) string {
	words := make([]string, len(nodes))
	for i, n := range nodes {
		words[i] = fmt.Sprint(n + 1)
	}
	if len(nodes) == 1 {
		return "node " + words[0]
	}
	last := len(words) - 1
	return "nodes " + strings.Join(words[:last], ", ") + " and " + words[last]
}

// goOn describes some steps of the continuation in which nothing goes wrong.
func (t *trace) goOn(steps int) {
	t.m.fairStart(&t.after)
	from := continued(t.m, t.machines)
	t.walker = from.walker
	for range steps {
		t.before, t.granted, t.nodes.answer.Pushes = t.after, 0, nil
		mv := from.step(&t.after)
		t.note(mv)
	}
}
