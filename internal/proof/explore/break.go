package explore

// In a world with Breaks an operator breaks leases of a lock that several can hold: it sends
// BREAK to all nodes, and the lease is broken once a majority of them have executed it. The
// operator waits for that as long as for any answer, which is a tick: what arrives later
// counts only if the operator asks again, and all begins anew. So a request
// that has not arrived after two ticks is lost. No lease ends earlier by this, as Mutex checks.
// No renewal that begins after the break succeeds, as Revived checks.

// longerTombstone is for how many ticks a tombstone outlasts a lease: until the last node that
// counts has the request, the lease may still be renewed.
func (m *Model) longerTombstone() int {
	if m.ShortTombstones {
		return 0
	}
	return 1
}

// beginBreak sends the requests.
func (s *slot) beginBreak(m *Model) {
	for n := range m.Nodes {
		s.cells[n].share.breaks = breakAsked
	}
}

// passBreak lets a tick pass.
func (s *slot) passBreak() {
	begun := false
	for n := range s.cells {
		if b := &s.cells[n].share.breaks; *b == breakAsked && s.brokeLate {
			*b = notBreaking
		} else if *b != notBreaking {
			begun = true
		}
	}
	s.brokeLate = s.brokeLate || begun
}

// endBreak forgets the requests about a lease that is over.
func (s *slot) endBreak() {
	for n := range s.cells {
		s.cells[n].share.breaks = notBreaking
	}
	s.hopeless, s.brokeLate = false, false
}
