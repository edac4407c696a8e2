package sim

import "time"

// wallAhead is by how much the client's wall clock is ahead of its other clock, for
// the clock watch: nil where that one goes on while the machine sleeps.
func (c *client) wallAhead() func() time.Duration {
	if !c.w.switches.NoBootClock {
		return nil
	}
	return func() time.Duration { return c.w.now() + time.Duration(c.wall.Load()) - time.Duration(c.boot()) }
}

// jumpingTogether has the clocks of two of three nodes jump ahead by nearly a TTL,
// the second less than a quarantine after the first, again and again: a majority may
// have dropped its leases too early, and clients have seen it.
func jumpingTogether(seed uint64) Script {
	s := Script{Seed: seed, Nodes: 3, Clients: 4, Workers: 1, Locks: 1, TTL: 1, Span: 40, Poll: seed%2 == 0}
	for at, n := 2000, 0; at < s.Span*1000; at, n = at+11_000, n+1 {
		apart := 20 + int(seed%8)*250
		s.Faults = append(s.Faults,
			Fault{Kind: StepAhead, At: at, Size: 1790, Node: n%s.Nodes + 1},
			Fault{Kind: StepAhead, At: at + apart, Size: 1790, Node: (n+1)%s.Nodes + 1})
	}
	return s
}

// jump sets the node's clock ahead.
func (n *node) jump(d time.Duration) {
	n.steps += d
	n.discountedUntil = n.w.now() + n.w.quarantine()
}

// discounted is for how long clients do not count what the node grants, since they
// have seen its clock jump: at least, since they see it a little later.
func (n *node) discounted() time.Duration {
	if n.w.switches.NoClockWatch {
		return 0
	}
	return max(0, n.discountedUntil-n.w.now())
}
