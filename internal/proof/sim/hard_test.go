package sim

import (
	"strings"
	"testing"
)

// A lease held for 100 TTLs through rolling restarts is not lost.
func TestRollingRestarts(t *testing.T) {
	s := rolling()
	r := Run(t, s, Shipped(), false)
	if len(r.Violations) > 0 {
		report(t, "-script='"+s.String()+"'", s, r)
	}
	if r.Tally.Heals < 20 {
		t.Errorf("only %d nodes were healed", r.Tally.Heals)
	}
}

// A node whose clock jumps does not count for a client that has seen it jump. That two
// would have the lock otherwise, the mutant clock-watch shows.
func TestJumpingClocksAreDiscounted(t *testing.T) {
	for seed := range uint64(20) {
		s := jumping(seed)
		if r := Run(t, s, Shipped(), false); len(r.Violations) > 0 {
			report(t, "-script='"+s.String()+"'", s, r)
			return
		}
	}
}

// A network that is slow and then gone does not make a holder believe in its lease
// for longer than it lasts.
func TestFadingNetwork(t *testing.T) {
	for seed := range uint64(20) {
		s := fading(seed)
		if r := Run(t, s, Shipped(), false); len(r.Violations) > 0 {
			report(t, "-script='"+s.String()+"'", s, r)
			return
		}
	}
}

// While one list of nodes is replaced by another, clients with the old list,
// the new one and both exclude each other, because nodes refuse those whose
// majority may have nothing in common with others'. Before and after, the lock
// is to be had.
func TestOneListReplacesAnother(t *testing.T) {
	blind := Switches{Edit: without("node-looks-at-lists")}
	found := 0
	for seed := range uint64(20) {
		s := rollingList(seed)
		r := Run(t, s, Shipped(), false)
		if len(r.Violations) > 0 {
			report(t, "-script='"+s.String()+"'", s, r)
			return
		}
		if r.Tally.Grants < 10 {
			t.Errorf("seed %d: only %d grants", seed, r.Tally.Grants)
		}
		if found == 0 {
			if r := Run(t, s, blind, false); len(r.Violations) > 0 {
				found++
				t.Logf("seed %d: if nodes do not look at lists: %v", seed, r.Violations[0])
			}
		}
	}
	if found == 0 {
		t.Error("lists that differ did no harm: this test proves nothing")
	}
}

// Counters of tokens need not be kept for ever: where one has expired, the
// node's clock is the floor, and has long passed it. Without that floor tokens
// go back.
func TestCountersMayExpire(t *testing.T) {
	shorten := strings.NewReplacer("'86400000'", "'2000'", // in the first line of every script: a day
		"local ttl, life = ARGV[n + 1], ARGV[n + 2]", "local ttl, life = ARGV[n + 1], '2000'").Replace
	floorless := without("node-clock-floor")
	found := false
	for seed := range uint64(20) {
		s := busy(seed)
		s.Locks, s.Workers = 3, 2 // so that now and then nobody wants one of them
		if r := Run(t, s, Switches{Edit: shorten}, false); len(r.Violations) > 0 {
			t.Fatalf("seed %d: %v", seed, r.Violations)
		}
		if !found {
			r := run(t, s, Switches{Edit: func(text string) string { return floorless(shorten(text)) }}, false, noProposals)
			found = len(r.Violations) > 0
		}
	}
	if !found {
		t.Error("without the clocks as their floor tokens increased all the same: no counter expired")
	}
}

// noProposals has the clients believe in a time of day before all others, so that they
// propose no token.
func noProposals(w *world) {
	for _, c := range w.clients {
		c.wrong.Store(-2 * int64(midnight))
	}
}
