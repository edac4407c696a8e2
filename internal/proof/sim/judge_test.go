package sim

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// every repeats a fault all through a run.
func every(f Fault, from, step, to int) (all []Fault) {
	for f.At = from; f.At < to; f.At += step {
		all = append(all, f)
	}
	return all
}

// busy is a run in which the lock is nearly always held, and wanted.
func busy(seed uint64, faults []Fault) Script {
	return Script{Seed: seed, Nodes: 3, Clients: 3, Workers: 1, Locks: 1, TTL: 1, Span: 20, Faults: faults}
}

// What the protocol assumes, it needs: without it the judge finds what was
// promised broken. A judge that never finds anything would prove nothing.
func TestAssumptionsAreNeeded(t *testing.T) {
	const tries = 200
	everywhere := func(k Kind, size, last int) []Fault {
		return every(Fault{Kind: k, Size: size, For: last}, 1500, 2500, 20_000)
	}
	for _, c := range []struct {
		name     string
		faults   []Fault
		switches func(*Switches)
		tamper   func(*world)
		rules    []string // any of these
	}{
		{name: "clocks of nodes do not jump ahead", faults: everywhere(StepAhead, 1000, 0),
			rules: []string{Exclusion, ToldLate}},
		{name: "nodes do not lose a lock", faults: everywhere(Forget, 0, 0),
			rules: []string{Exclusion, ToldLate}},
		{name: "a node that lost data stays out", faults: everywhere(Crash, 2000, 20),
			switches: func(s *Switches) { s.Edit = without("quarantine") }, rules: []string{Exclusion, ToldLate, Token}},
		{name: "and for as long as leases last", faults: everywhere(Crash, 2000, 20),
			switches: func(s *Switches) { s.Edit = without("quarantine-long-enough") }, rules: []string{Exclusion, ToldLate, Token}},
		{name: "the client's clock counts suspend", faults: everywhere(Doze, 0, 2000),
			switches: func(s *Switches) { s.NoBootClock = true }, rules: []string{Exclusion, Stale, Answers}},
		{name: "nodes remember who was released", faults: append(every(Fault{Kind: Cut, Size: 800}, 1500, 300, 20_000), Fault{Kind: Delay, Size: 15, For: 20_000}),
			switches: func(s *Switches) { s.Edit = without("node-tombstones") }, rules: []string{Orphan}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sw := Switches{Patient: true}
			if c.switches != nil {
				c.switches(&sw)
			}
			// A run ends with the first promise that it breaks, which may be another one.
			for seed := range uint64(tries) {
				r := run(t, busy(seed, c.faults), sw, false, c.tamper)
				if len(r.Violations) > 0 && slices.Contains(c.rules, r.Violations[0].Rule) {
					return
				}
			}
			t.Errorf("none of %q was found broken in %d runs", c.rules, tries)
		})
	}
}

// The same runs are in order as long as the assumptions hold.
func TestAssumptionsAreEnough(t *testing.T) {
	for _, k := range []struct {
		kind       Kind
		size, last int
	}{{Crash, 2000, 20}, {Crash, 500, 20}, {Doze, 0, 2000}, {Cut, 800, 0}, {StepBack, 250, 0}, {Move, 1, 1500}, {Hold, 0, 1500}} {
		s := busy(1, every(Fault{Kind: k.kind, Size: k.size, For: k.last}, 1500, 2500, 20_000))
		if r := Run(t, s, Shipped(), false); len(r.Violations) > 0 {
			report(t, "-script='"+s.String()+"'", s, r)
		}
	}
}

// What is left behind is found, whatever it is.
func TestNothingIsLeftBehindUnseen(t *testing.T) {
	for _, c := range []struct {
		name, rule, text string
		tamper           func(*world)
	}{
		{"a goroutine", Orphan, "goroutines were left behind", func(*world) {
			go func() { <-make(chan int) }()
		}},
		{"a lock", Orphan, "keeps lock 1", func(w *world) {
			w.at(w.calmAt+100*time.Millisecond, outside, func() {
				var take func()
				take = func() {
					if !seize(w, w.nodes[1]) {
						w.after(time.Millisecond, outside, take)
					}
				}
				take()
			})
		}},
		{"a waiter", Waiting, "wants the lock once more", func(w *world) {
			var take func() // for ever, on all nodes, as they become free
			take = func() {
				for _, n := range w.nodes {
					seize(w, n)
				}
				w.after(time.Millisecond, outside, take)
			}
			w.at(w.calmAt, outside, take)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, busy(1, nil), Switches{Patient: true}, false, c.tamper)
			if len(r.Violations) == 0 || r.Violations[0].Rule != c.rule || !strings.Contains(r.Violations[0].Text, c.text) {
				t.Errorf("found %v, want %q", r.Violations, c.text)
			}
		})
	}
}

// seize has a node keep the first lock for an owner that the first client never made, if
// it is nobody's.
func seize(w *world, n *node) bool {
	w.owner(w.hist.number("stray")).client = 0
	session := n.server.Connect(func([]byte) {})
	defer session.Close()
	return string(session.Do([]string{"SET", lockName(0), "stray {}", "NX", "PX", "3600000"})) == "+OK\r\n"
}
