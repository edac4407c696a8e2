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
		t.Errorf("%d nodes were healed, want 20 at least", r.Tally.Heals)
	}
}

// A node whose clock jumps does not count for a client that has seen the jump. The mutant
// clock-watch shows that the lock would have two holders otherwise.
func TestJumpingClocksAreDiscounted(t *testing.T) {
	for seed := range uint64(20) {
		s := jumping(seed)
		if r := Run(t, s, Shipped(), false); len(r.Violations) > 0 {
			report(t, "-script='"+s.String()+"'", s, r)
			return
		}
	}
}

// If the network becomes slow and then fails, a holder does not count on its lease for longer
// than it lasts.
func TestFadingNetwork(t *testing.T) {
	for seed := range uint64(20) {
		s := fading(seed)
		if r := Run(t, s, Shipped(), false); len(r.Violations) > 0 {
			report(t, "-script='"+s.String()+"'", s, r)
			return
		}
	}
}

// While one list of nodes is replaced by another, clients with the old list, the new one and
// both exclude each other, because nodes refuse clients whose majority may have no node in
// common with that of others. Before and after, clients get the lock.
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
			t.Errorf("seed %d: %d grants, want 10 at least", seed, r.Tally.Grants)
		}
		if found == 0 {
			if r := Run(t, s, blind, false); len(r.Violations) > 0 {
				found++
				t.Logf("seed %d: if nodes do not compare lists: %v", seed, r.Violations[0])
			}
		}
	}
	if found == 0 {
		t.Error("without the mechanism, different lists broke no promise with any seed: this test proves nothing")
	}
}

// A node need not keep its counter of tokens for ever. When the counter has expired, the
// node's clock is the floor of tokens, and has passed the counter long before. Without that
// floor tokens go back.
func TestCountersMayExpire(t *testing.T) {
	shorten := strings.NewReplacer("'86400000'", "'2000'", // in the first line of every script: a day
		"local ttl, life = ARGV[n + 1], ARGV[n + 2]", "local ttl, life = ARGV[n + 1], '2000'").Replace
	floorless := without("node-clock-floor")
	found := false
	for seed := range uint64(20) {
		s := busy(seed)
		s.Locks, s.Workers = 3, 2 // so that now and then no worker wants one of the locks
		if r := Run(t, s, Switches{Edit: shorten}, false); len(r.Violations) > 0 {
			t.Fatalf("seed %d: %v", seed, r.Violations)
		}
		if !found {
			r := run(t, s, Switches{Edit: func(text string) string { return floorless(shorten(text)) }}, false, noProposals)
			found = len(r.Violations) > 0
		}
	}
	if !found {
		t.Error("without the clock as a floor, tokens still rose with every seed: no counter has expired")
	}
}

// noProposals sets the clocks of all clients back, so that they propose no tokens.
func noProposals(w *world) {
	for _, c := range w.clients {
		c.wrong.Store(-2 * int64(midnight))
	}
}
