package sim

import (
	"strings"
	"testing"
	"time"
)

// The judge finds each thing that is left at the end.
func TestLeftoversAreFound(t *testing.T) {
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
			r := run(t, busy(1), Switches{Patient: true}, false, c.tamper)
			if len(r.Violations) == 0 || r.Violations[0].Rule != c.rule || !strings.Contains(r.Violations[0].Text, c.text) {
				t.Errorf("found %v, want a violation of %q that says %q", r.Violations, c.rule, c.text)
			}
		})
	}
}

// seize acquires the first lock on a node, if it is free there, for an owner of the first client
// that no attempt has used.
func seize(w *world, n *node) bool {
	w.owner(w.hist.number("stray")).client = 0
	session := n.server.Connect(func([]byte) {})
	defer session.Close()
	return string(session.Do([]string{"SET", lockName(0), "stray {}", "NX", "PX", "3600000"})) == "+OK\r\n"
}
