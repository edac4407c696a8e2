package explore

import "github.com/leasehold-dev/leasehold/internal/quorum"

// In a world with Breaks an operator breaks leases of a lock that several can hold: it sends
// BREAK to all nodes, and the lease is broken once a majority of them have executed it. The
// operator waits for that as long as for any answer, which is a tick: what arrives later
// counts only if the operator asks again, and all begins anew. So a request is lost that has
// not arrived after two ticks. Nothing of this ends a lease earlier than it would end, which
// Mutex shows; and no renewal succeeds any more that begins later, which is Revived.

// breaking is the phase of a request to break a lease at one node.
type breaking uint8

const (
	notBreaking breaking = iota
	breakAsked
	breakDone
)

// longerTomb is for how many ticks a tombstone outlasts a lease: until the last node that
// counts has the request, the lease may still be renewed.
func (m *Model) longerTomb() int {
	if m.ShortTombs {
		return 0
	}
	return 1
}

func (h *share) packedBreak() byte { return byte(bit(h.broken)) | byte(h.breaks)<<1 }

func (h *share) unpackBreak(b byte) { h.broken, h.breaks = b&1 != 0, breaking(b>>1) }

// breakMoves appends the steps of the operator and its requests about one lease.
func (ch *choices) breakMoves(s *slot, i uint8, out []move) []move {
	begun := false
	for n := range ch.m.Nodes {
		switch s.cells[n].share.breaks {
		case breakAsked:
			out = append(out, move{kind: deliverBreak, slot: i, node: uint8(n)})
			begun = true
		case breakDone:
			begun = true
		}
	}
	if ch.m.Breaks && !begun && !s.brokeLate && ch.valid(s) {
		out = append(out, move{kind: beginBreak, slot: i})
	}
	return out
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

// isBroken reports whether a majority has broken the lease.
func (j *judge) isBroken(s *slot) bool {
	var done quorum.Set
	for n := range j.m.Nodes {
		if s.cells[n].share.breaks == breakDone {
			done |= quorum.SetOf(n)
		}
	}
	cfg := j.m.quorum()
	return cfg.HasQuorum(done)
}

// deliverBreak makes a node execute such a request.
func (ns *nodes) deliverBreak(st *state, mv move) {
	q := sharedAsk{node: ns.kept(st, mv.node), slot: mv.slot, breaks: true}
	for i := range ns.m.Attempts {
		q.readers[i] = st.slots[i].reads
	}
	after := ns.shared.execute(&q)
	ns.answer = after.answer
	ns.keepShared(st, mv.node, &after.node)
	st.slots[mv.slot].cells[mv.node].share.breaks = breakDone
}
