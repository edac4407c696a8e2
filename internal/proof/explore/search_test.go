package explore

import (
	"slices"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// exact visits the same states as Search, but one after the other, and identified by their
// encodings instead of fingerprints.
func exact(t *testing.T, m Model) (states map[string]bool, depth int, w *walker) {
	t.Helper()
	w = newWalker(&m, newMachines(&m))
	states = map[string]bool{}
	var level []string
	visit := func(st state) {
		w.canonicalizer.canonical(&st)
		code := string(m.encode(&st, nil))
		if !states[code] {
			states[code] = true
			level = append(level, code)
		}
	}
	for _, st := range w.initial() {
		visit(st)
	}
	for len(level) > 0 {
		now := level
		level = nil
		depth++
		for _, code := range now {
			var st state
			if rest := m.decode([]byte(code), &st); len(rest) != 0 {
				t.Fatalf("%d bytes of a state were not decoded", len(rest))
			}
			if again := string(m.encode(&st, nil)); again != code {
				t.Fatalf("a state, decoded and encoded again, differs:\n%x\n%x", code, again)
			}
			for _, mv := range w.choices.moves(&st, nil) {
				next := st
				if w.apply(&next, mv); w.broken != 0 {
					t.Fatalf("a sound model breaks %v", w.broken)
				}
				visit(next)
			}
		}
	}
	return states, depth, w
}

// sound has small models in which much happens and nothing breaks.
var sound = map[string]Model{
	"renewals":   world(2, func(m *Model) { m.Renewals = 1 }),
	"no time":    world(2, func(m *Model) { m.NoTime, m.Nodes, m.Check = true, 2, Tokens }),
	"orphans":    world(1, func(m *Model) { m.Check, m.MaxDelay = Orphans, 1 }),
	"crash":      world(2, func(m *Model) { m.Crashes, m.Quarantine, m.Reread, m.Nodes, m.Check = 1, 2, RereadAfter, 2, Mutex }),
	"one owner":  world(2, func(m *Model) { m.ReuseOwner, m.TTL = true, 1 }),
	"every":      world(2, func(m *Model) { m.EveryEvent, m.TTL, m.Nodes = true, 1, 2 }),
	"five":       world(1, func(m *Model) { m.Nodes, m.Twice = 5, 1 }),
	"queue":      inQueue(2, func(m *Model) { m.Nodes, m.Asks, m.Twice = 1, 3, 1 }),
	"two queues": inQueue(2, func(m *Model) { m.Nodes, m.TTL, m.Patience, m.Doubts = 2, 1, 1, 1 }),
	"returns":    one(3, func(m *Model) { m.Returns, m.Asks, m.TTL, m.Patience, m.Twice = true, 1, 1, 1, 1 }),
	"beside": world(2, func(m *Model) {
		m.Nodes, m.TTL, m.Extends, m.ReleaseVote, m.Check = 2, 1, 1, true, Safety|Freed
	}),
	"shared": readWrite(2, func(m *Model) { m.TTL, m.Crashes, m.Quarantine, m.KeepCounter = 1, 1, 1, true }),
	"slots":  permits(2, 2, func(m *Model) { m.TTL, m.Nodes, m.Renewals = 1, 2, 1 }),
	"clocks": func() Model { m := floor(1, 1, 1); m.Nodes = 2; return m }(),
}

// With fingerprints, several workers and numbered machines, Search visits exactly the states
// that exist.
func TestSearchVisitsEveryState(t *testing.T) {
	for name, m := range sound {
		t.Run(name, func(t *testing.T) {
			states, depth, _ := exact(t, m)
			r := Search(m, Limits{Workers: 2})
			if !r.Complete || r.States != len(states) || r.Depth != depth {
				t.Errorf("complete %v, %d states, depth %d, want true, %d and %d", r.Complete, r.States, r.Depth, len(states), depth)
			}
			t.Logf("%d states", r.States)
		})
	}
}

// If the nodes in all events of an attempt are permuted, its state is the permuted one, and it
// sends the same messages to the permuted nodes.
func TestNodesAreAlike(t *testing.T) {
	for _, name := range []string{"renewals", "queues"} {
		t.Run(name, func(t *testing.T) { nodesAreAlike(t, alike[name]) })
	}
}

var alike = map[string]Model{
	"renewals": world(2, func(m *Model) { m.Renewals, m.Spread = 1, 1 }),
	"queues":   inQueue(2, func(m *Model) { m.TTL, m.Patience, m.Returns = 1, 1, true }),
}

func nodesAreAlike(t *testing.T, m Model) {
	_, _, w := exact(t, m)
	turns := turnings(m.Nodes)
	if len(turns) != 6 {
		t.Fatalf("%d permutations of three nodes, want 6", len(turns))
	}
	checked := 0
	for key, step := range w.attemptSteps {
		if key.event.Kind == quorum.Tick || key.event.Kind == quorum.Cancel {
			continue
		}
		checked++
		for _, to := range turns {
			e := key.event
			e.Node = turned(e, to)
			other := w.stepAttempt(w.turnAttempt(key.id, to), e, key.age)
			if other.next != w.turnAttempt(step.next, to) {
				t.Fatalf("%v: with permuted nodes the attempt has another state than the permuted one", key.event)
			}
			sends := slices.Clone(step.sends)
			for i := range sends {
				sends[i].Node = int(to[sends[i].Node])
			}
			byNode := func(a, b quorum.Send) int { return a.Node - b.Node }
			slices.SortFunc(sends, byNode)
			theirs := slices.Clone(other.sends)
			slices.SortFunc(theirs, byNode)
			if !slices.Equal(sends, theirs) {
				t.Fatalf("%v: with permuted nodes the attempt sends %v, want %v", key.event, theirs, sends)
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d steps were checked, want 100 at least", checked)
	}
}

// The shortcuts of the search, which leave out events, forget and rename, change no verdict.
// They find a violation after about as many steps as the search without them.
func TestShortcutsChangeNoVerdict(t *testing.T) {
	two := func(change func(*Model)) Model {
		m := world(2, change)
		m.Nodes, m.TTL = 2, 1
		return m
	}
	for _, c := range []struct {
		name string
		m    Model
		want Property
	}{
		{"sound", two(func(m *Model) {}), 0},
		{"broken", two(func(m *Model) { m.Crashes, m.Check = 2, Mutex }), Mutex},
		{"waiting", one(2, func(m *Model) {}), 0},
		{"waiting at two nodes", inQueue(2, func(m *Model) { m.Nodes, m.TTL, m.Patience = 2, 1, 1 }), 0},
		{"waiting, broken", one(2, func(m *Model) { m.Check, m.Rules.HandsSame = Tokens, true }), Tokens},
		{"rejoining", one(3, func(m *Model) { m.Returns, m.Asks, m.TTL, m.Patience = true, 1, 1, 1 }), 0},
		{"rejoining, broken", one(3, func(m *Model) { m.Returns, m.Asks, m.Check, m.Rules.ReturnsWhole = true, 1, Orphans, true }), Orphans},
		{"extending", two(func(m *Model) { m.Extends = 1 }), 0},
		{"read-write", two(func(m *Model) { m.Kind = rule.ReadWrite }), 0},
		{"semaphore", two(func(m *Model) { m.Kind = rule.Semaphore(2) }), 0},
		{"semaphore, broken", two(func(m *Model) { m.Kind, m.Check, m.KindRules.KeepsOthers = rule.Semaphore(2), Whole, true }), Whole},
		{"leaving orphans, broken", two(func(m *Model) { m.Check, m.Rules.NoTombstones = Orphans, true }), Orphans},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := c.m
			with := Search(m, Limits{Workers: 2})
			for _, do := range []struct{ plain, every bool }{{true, false}, {false, true}, {true, true}} {
				m.Plain, m.EveryEvent = do.plain, do.every
				r := Search(m, Limits{Workers: 2})
				t.Logf("plain %v, every event %v: %v, %d states, depth %d, %v", do.plain, do.every, r.Found, r.States, r.Depth, r.Took)
				if r.Found != c.want || with.Found != c.want || r.Complete != with.Complete {
					t.Errorf("plain %v, every event %v: found %v, with shortcuts %v, want %v", do.plain, do.every, r.Found, with.Found, c.want)
				}
				if c.want != 0 && r.Depth > with.Depth+2 { // shortcuts join a step to another one
					t.Errorf("plain %v, every event %v: depth %d, want at most two more than with shortcuts, %d", do.plain, do.every, r.Depth, with.Depth)
				}
			}
		})
	}
}
