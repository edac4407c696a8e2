package sim

// Scripts that are hard in a way that seeds hardly ever are.

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

// jumping has the clock of one node after the other jump ahead by nearly a TTL,
// each after what the one before it granted counts again.
func jumping(seed uint64) Script {
	s := Script{Seed: seed, Nodes: 3, Clients: 4, Workers: 1, Locks: 1, TTL: 1, Span: 30}
	for at, n := 2000, 0; at < s.Span*1000; at, n = at+4500, n+1 {
		s.Faults = append(s.Faults, Fault{Kind: StepAhead, At: at, Size: 1790, Node: n%s.Nodes + 1})
	}
	return s
}
