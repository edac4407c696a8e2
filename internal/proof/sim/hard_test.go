package sim

import "testing"

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

// A node whose clock jumps does not count for who has seen it jump: runs in
// which two would have the lock otherwise are in order.
func TestJumpingClocksAreDiscounted(t *testing.T) {
	blind := Shipped()
	blind.NoClockWatch = true
	for seed := range uint64(200) {
		s := jumping(seed)
		if r := Run(t, s, Shipped(), false); len(r.Violations) > 0 {
			report(t, "-script='"+s.String()+"'", s, r)
			return
		}
		if r := Run(t, s, blind, false); len(r.Violations) > 0 {
			t.Logf("seed %d: without looking at the clocks: %v", seed, r.Violations[0])
			return
		}
	}
	t.Error("clocks that jump did no harm: this test proves nothing")
}

// A network that is slow and then gone does not make a holder believe in its lease
// for longer than it lasts.
func TestFadingNetwork(t *testing.T) {
	for seed := range uint64(60) {
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
	blind := Shipped()
	blind.AnyList = true
	found := 0
	for seed := range uint64(40) {
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
	short := Shipped()
	short.Rules.CounterLife = 2 * short.Rules.MaxLead // and not a day
	bare := short
	bare.Rules.NoClock = true
	found := false
	for seed := range uint64(60) {
		s := busy(seed, nil)
		s.Locks, s.Workers = 3, 2 // so that now and then nobody wants one of them
		if r := Run(t, s, short, false); len(r.Violations) > 0 {
			t.Fatalf("seed %d: %v", seed, r.Violations)
		}
		if !found {
			r := run(t, s, bare, false, func(w *world) {
				for _, c := range w.clients {
					c.wall.Store(-int64(1e18)) // nor do clients propose the time of day
				}
			})
			found = len(r.Violations) > 0
		}
	}
	if !found {
		t.Error("without the clocks as their floor tokens increased all the same: no counter expired")
	}
}
