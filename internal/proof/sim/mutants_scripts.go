//go:build mutants

package sim

// These scripts find mutants that the seeds find only now and then. They find nothing as
// long as no mechanism is off.

// inTurn begins a fault at one node or client after the other, all through a busy run.
func inTurn(step int, f Fault, who func(*Fault) *int, several int) (all []Fault) {
	for i, f := range every(step, f) {
		*who(&f) = i%several + 1
		all = append(all, f)
	}
	return all
}

func nodeOf(f *Fault) *int   { return &f.Node }
func clientOf(f *Fault) *int { return &f.Client }

func quiet(seed uint64) Script { return busy(seed) }

// losing has all nodes restarted at once without what they wrote last.
func losing(seed uint64) Script {
	return busy(seed, every(2500, Fault{Kind: Crash, Size: 500, For: 20})...)
}

// losingOnce has them restarted so once, and one client that is then left alone.
func losingOnce(seed uint64) Script {
	s := busy(seed, Fault{Kind: Crash, At: 1500, Size: 500, For: 20})
	s.Clients, s.Span = 1, 3
	return s
}

// dozingLong has leases that last so long that much is left of every timer after the
// machines were suspended.
func dozingLong(seed uint64) Script {
	s := busy(seed)
	s.TTL, s.Span = 5, 100
	for at := 6000; at < 100_000; at += 15_000 {
		s.Faults = append(s.Faults, Fault{Kind: Doze, At: at, For: 10_000})
	}
	return s
}

func holding(seed uint64) Script {
	return busy(seed, every(2500, Fault{Kind: Hold, For: 1500})...)
}

func deafening(seed uint64) Script {
	return busy(seed, inTurn(1100, Fault{Kind: Deaf, For: 700}, nodeOf, 3)...)
}

// refusing has one node after the other refuse connections for an instant, among clients
// that come back for the lock at once.
func refusing(seed uint64) Script {
	s := busy(seed, inTurn(1000, Fault{Kind: Refuse, For: 150}, nodeOf, 3)...)
	s.Eager = true
	return s
}

// blinking has one node after the other away for an instant, never two at once. A release
// that a node misses blocks that node for up to a TTL, and two such nodes block the lock.
func blinking(seed uint64) Script {
	s := Script{Seed: seed, Nodes: 3, Clients: 2, Workers: 1, Locks: 1, TTL: 2, Span: 30, Eager: true}
	for i, at := 0, 1500; at < s.Span*1000; i, at = i+1, at+250 {
		s.Faults = append(s.Faults, Fault{Kind: Refuse, At: at, For: 100, Node: i%s.Nodes + 1})
	}
	return s
}

// ailing has all nodes answer with errors while leases are renewed.
func ailing(seed uint64) Script {
	return busy(seed, every(2100, Fault{Kind: Ail, For: 900, Size: int(seed % 3)})...)
}

// contention has many waiters. One after the other receives nothing from one node.
func contention(seed uint64) Script {
	s := busy(seed)
	s.Clients, s.Workers, s.TTL, s.Eager = 6, 2, 2, true
	for i, f := range every(500, Fault{Kind: Deaf, For: 100}) {
		f.Node, f.Client = i%s.Nodes+1, i%s.Clients+1
		s.Faults = append(s.Faults, f)
	}
	return s
}

// rollingShort is a shorter rolling.
func rollingShort(seed uint64) Script {
	s := busy(seed)
	s.Clients, s.Steady, s.Span = 2, true, 60
	for i, at := 0, 1000; at < s.Span*1000; i, at = i+1, at+6500 {
		s.Faults = append(s.Faults, Fault{Kind: Crash, At: at, For: 300, Size: 2000, Node: i%s.Nodes + 1})
	}
	return s
}

// jumpingTogether has the clocks of two nodes jump ahead one soon after the other, as a
// time server sets them: both before a holder renews its lease.
func jumpingTogether(seed uint64) Script {
	s := busy(seed)
	s.Clients, s.Span, s.Poll = 4, 30, seed%2 == 0
	for i, at := 0, 2000; at < s.Span*1000; i, at = i+1, at+5500 {
		for k := range 2 {
			s.Faults = append(s.Faults, Fault{Kind: StepAhead, At: at + 200*k, Size: 1790, Node: (i+k)%s.Nodes + 1})
		}
	}
	return s
}

// copied has one server after the other replaced by a copy of it that has been running for
// long. None of them is known to append every write to its file.
func copied(seed uint64) Script {
	s := busy(seed)
	s.Clients, s.Span, s.Poll = 4, 40, seed%2 == 0
	for i, at := 0, 2000; at < s.Span*1000; i, at = i+1, at+1000 {
		s.Faults = append(s.Faults, Fault{Kind: Replace, At: at, Size: 900, Node: i%s.Nodes + 1})
	}
	s.Faults = append(s.Faults, Fault{Kind: Crash, At: s.Span * 1000, For: 1, Size: 1})
	return s
}

// halfDeaf has two nodes, and the replies of one after the other are held: a majority is
// both.
func halfDeaf(seed uint64) Script {
	s := Script{Seed: seed, Nodes: 2, Clients: 2, Workers: 2, Locks: 1, TTL: 2, Span: 40}
	for i := range 6 {
		s.Faults = append(s.Faults, Fault{Kind: Deaf, At: 2000 + 4000*i, For: 1000, Node: 2 - i%2})
	}
	for i := range 3 {
		s.Faults = append(s.Faults, Fault{Kind: Slow, At: 25_000 + 5000*i, For: 3000, Size: 15, Node: 2 - i%2})
	}
	return s
}

// killing has many waiters. Now and then the process of one of them dies.
func killing(seed uint64) Script {
	s := busy(seed)
	s.Clients, s.Workers, s.TTL = 6, 2, 5
	for i := range 4 {
		s.Faults = append(s.Faults, Fault{Kind: Kill, At: 2000 + 4500*i, Client: i + 3})
	}
	return s
}

// missing has one client after the other receive nothing from the only node, until its
// connection breaks: pushes in the meantime are lost. Leases last so long that no waiter
// refreshes its place for many times as long as a lock may stay free.
func missing(seed uint64) Script {
	s := Script{Seed: seed, Nodes: 1, Clients: 3, Workers: 1, Locks: 1, TTL: 15, Span: 20, Eager: true}
	for i, f := range every(2500, Fault{Kind: Deaf, For: 1000}) {
		f.Client = i%s.Clients + 1
		s.Faults = append(s.Faults, f, Fault{Kind: Cut, At: f.At + f.For - 1, Client: f.Client})
	}
	return s
}

// shared has many workers for one lock of that kind on three nodes, of which one after the other
// cannot be heard for a while.
func shared(kind int) func(seed uint64) Script {
	return func(seed uint64) Script {
		s := Script{Seed: seed, Nodes: 3, Clients: 3, Workers: 3, Locks: 1, TTL: 1, Span: 20, Kinds: kind}
		for i, f := range every(900, Fault{Kind: Deaf, For: 400}) {
			if f.At < s.Span*1000 {
				f.Node, f.Client = i%s.Nodes+1, i%s.Clients+1
				s.Faults = append(s.Faults, f)
			}
		}
		return s
	}
}

// sharedLosing is the same on nodes that are restarted at once without what they wrote last.
func sharedLosing(kind int) func(seed uint64) Script {
	return func(seed uint64) Script {
		s := shared(kind)(seed)
		s.Span, s.Faults = 30, every(2500, Fault{Kind: Crash, Size: 500, For: 20})
		return s
	}
}
