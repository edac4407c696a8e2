package sim

// All nodes are restarted without their data, one after the other and again and
// again, each after the one before it is out of quarantine and renewals have
// healed it.
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
