package sim

import "math/rand/v2"

// Scripts that are hard in a way that seeds hardly ever are.

// busy is a run in which the lock is nearly always held, and wanted.
func busy(seed uint64, faults ...Fault) Script {
	return Script{Seed: seed, Nodes: 3, Clients: 3, Workers: 1, Locks: 1, TTL: 1, Span: 20, Faults: faults}
}

// every repeats a fault all through a busy run.
func every(step int, f Fault) (all []Fault) {
	for f.At = 1500; f.At < 20_000; f.At += step {
		all = append(all, f)
	}
	return all
}

// crashing has all nodes restarted at once without their data, again and again.
func crashing(seed uint64) Script {
	return busy(seed, every(2500, Fault{Kind: Crash, Size: 2000, For: 20})...)
}

// dozing has the clients' machines suspended for longer than a lease lasts, again and
// again.
func dozing(seed uint64) Script {
	return busy(seed, every(2500, Fault{Kind: Doze, For: 2000})...)
}

// cutting breaks all connections again and again, and what was sent over them arrives
// after what is sent next.
func cutting(seed uint64) Script {
	return busy(seed, append(every(700, Fault{Kind: Cut, Size: 800}), Fault{Kind: Delay, Size: 15, For: 20_000})...)
}

// uncounted has all nodes lose their token counters again and again, among clients that
// propose no token since their wall clocks are behind.
func uncounted(seed uint64) Script {
	return busy(seed, append(every(6500, Fault{Kind: Crash, Size: 2000, For: 20}), Fault{Kind: WallClock, At: 100, Size: -100_000})...)
}

// rolling has all nodes restarted without their data, one after the other and
// again and again, each after the one before it is out of quarantine and
// renewals have healed it.
func rolling() Script {
	const ttls = 100
	s := Script{Seed: 1, Nodes: 5, Clients: 3, Workers: 1, Locks: 2, TTL: 1, Steady: true}
	s.Span = int((ttls + 5) * s.longest().Seconds())
	pause := 6500 // the quarantine, and two renewals
	for at, n := 1000, 0; at < s.Span*1000; at, n = at+pause, n+1 {
		s.Faults = append(s.Faults, Fault{Kind: Crash, At: at, For: 300, Size: 2000, Node: n%s.Nodes + 1})
	}
	return s
}

// rollingList has one list of nodes replaced by another, under clients that know
// the old one, both, or the new one, and some trouble besides.
func rollingList(seed uint64) Script {
	s := Script{Seed: seed, Nodes: 4, Clients: 4, Workers: 1, Locks: 1, TTL: 1, Span: 40, Roll: true}
	src := seeded{rand.New(rand.NewPCG(seed, 7))}
	for range src.draw("faults", 0, 8) {
		// A node that lost its data believes the first client that comes.
		if f := s.drawFault(src, s.Faults); f.Kind != Crash && f.Kind != Wipe {
			s.Faults = append(s.Faults, f)
		}
	}
	s.Faults = append(s.Faults, Fault{Kind: Switch, At: src.draw("at", 10_000, 20_000)})
	return s
}

// jumping has the clock of one node after the other jump ahead by nearly a TTL,
// each after what the one before it granted counts again.
func jumping(seed uint64) Script {
	s := Script{Seed: seed, Nodes: 3, Clients: 4, Workers: 1, Locks: 1, TTL: 1, Span: 30, Poll: seed%2 == 0}
	for at, n := 2000, 0; at < s.Span*1000; at, n = at+4500, n+1 {
		s.Faults = append(s.Faults, Fault{Kind: StepAhead, At: at, Size: 1790, Node: n%s.Nodes + 1})
	}
	return s
}

// fading has one client after the other lose its network in the way that is worst
// for a holder: first everything is slow, so that a renewal takes nearly as long as
// it may, and then nothing passes for longer than what is left.
func fading(seed uint64) Script {
	s := Script{Seed: seed, Nodes: 3, Clients: 3, Workers: 1, Locks: 1, TTL: 1, NodeTimeout: 360, Span: 40, Poll: seed%2 == 0}
	for at, n := 1500, 0; at < s.Span*1000; at, n = at+2900, n+1 {
		s.Faults = append(s.Faults, Fault{Kind: Fade, At: at, For: 900, Size: 165, Client: n%s.Clients + 1})
	}
	return s
}
