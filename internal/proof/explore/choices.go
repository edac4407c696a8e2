package explore

import "github.com/leasehold-dev/leasehold/internal/quorum"

// choices lists the steps that the world can take.
type choices struct {
	*driver
	m *Model
}

// moves appends to out every step the world can take from st.
func (ch *choices) moves(st *state, out []move) []move {
	m := ch.m
	active, free := 0, -1
	for i := range m.Attempts {
		s := &st.slots[i]
		switch {
		case s.life == unused && free < 0:
			free = i
		case s.life == asking, s.life == holding && ch.valid(s):
			active++
		}
	}
	if m.ReuseOwner && free >= 0 { // a client's attempts follow each other
		for i := free; i < m.Attempts; i++ {
			if st.slots[i].life == unused && (i < m.Clients || !ch.busy(&st.slots[i-m.Clients])) {
				out = append(out, move{kind: begin, slot: uint8(i)})
			}
		}
	} else if free >= 0 && active < m.Clients && m.Lists {
		for r := knowsOld; r <= knowsNew; r++ {
			out = append(out, move{kind: begin, slot: uint8(free), arg: uint8(r)})
		}
	} else if free >= 0 && active < m.Clients {
		choices := len(m.Proposals) + 1
		if m.Kind.Shared {
			choices = 2
		}
		if m.AnyRank && free > 0 {
			choices = 2
		}
		for p := range choices {
			if m.Kind.Shared && p == 0 && m.Writers != 0 && ch.writers(st) >= m.Writers {
				continue
			}
			out = append(out, move{kind: begin, slot: uint8(free), arg: uint8(p)})
		}
	}
	for i := range m.Attempts {
		out = ch.slotMoves(st, uint8(i), out)
	}
	if m.Returns && free >= 0 {
		out = ch.returnMoves(st, uint8(free), active, out)
	}
	if !m.NoTime {
		out = append(out, move{kind: pass})
	}
	if m.Lists {
		out = ch.operator(st, out)
	}
	return ch.faults(st, out)
}

// busy reports whether a client cannot make another attempt beside this one.
func (ch *choices) busy(s *slot) bool {
	return s.life == unused || s.life == asking || s.life == holding && ch.valid(s)
}

// slotMoves appends the steps of one attempt, its lease and its messages.
func (ch *choices) slotMoves(st *state, i uint8, out []move) []move {
	s := &st.slots[i]
	if s.life == unused {
		return out
	}
	for n := range ch.m.Nodes {
		out = ch.cellMoves(st, i, uint8(n), out)
	}
	if ch.m.hasBeside() {
		out = ch.besideMoves(s, i, out)
	}
	switch s.life {
	case asking:
		if s.unclaimed && ch.standing(s) {
			out = append(out, move{kind: claim, slot: i})
		}
		if next, ok := ch.attempt(s.machine).Next(); ok && !s.unclaimed && next <= at(s.age) && ch.tells(tickAttempt, s, nil) {
			out = append(out, move{kind: tickAttempt, slot: i})
		}
		out = append(out, move{kind: cancelAttempt, slot: i})
	case holding:
		out = ch.breakMoves(s, i, out)
		if s.vote != 0 {
			if next, ok := ch.vote(s.vote).Next(); ok && next <= at(s.age-s.voteAt) && ch.tells(tickVote, s, nil) {
				out = append(out, move{kind: tickVote, slot: i})
			}
			out = append(out, move{kind: cancelVote, slot: i})
		} else if int(s.renewals) < ch.m.Renewals && ch.valid(s) {
			out = append(out, move{kind: renew, slot: i})
			if ch.m.ShortRenewals {
				out = append(out, move{kind: renew, slot: i, arg: 1})
			}
		}
		out = append(out, move{kind: release, slot: i})
	case over:
		if !s.released {
			out = append(out, move{kind: release, slot: i})
		}
		if s.unclaimed { // no attempt follows it
			out = append(out, move{kind: cancelAttempt, slot: i})
		}
	}
	return out
}

// faults appends the faults of nodes.
func (ch *choices) faults(st *state, out []move) []move {
	for i := range ch.m.Nodes {
		n := uint8(i)
		if st.crashes > 0 {
			out = append(out, move{kind: crash, node: n})
		}
		if (st.losses > 0 || ch.m.NoTime && ch.m.Losses == 0) && st.owner(n) >= 0 {
			out = append(out, move{kind: lose, node: n})
		}
		if st.jumps > 0 {
			out = append(out, move{kind: jump, node: n})
		}
		nd := &st.nodes[n]
		if nd.unread == 0 || ch.m.Reread == RereadAfter && nd.quarantined > 0 {
			continue
		}
		for p := range ch.m.Nodes {
			// A peer that is itself without its counter has nothing to tell.
			if nd.unread&(1<<p) != 0 && st.nodes[p].unread == 0 {
				out = append(out, move{kind: reread, node: n, arg: uint8(p)})
			}
		}
	}
	return out
}

// returnMoves are the releases that begin an attempt in slot free, if one more than
// the active ones may be.
func (ch *choices) returnMoves(st *state, free uint8, active int, out []move) []move {
	for i := range uint8(ch.m.Attempts) {
		s := &st.slots[i]
		others := active
		switch {
		case s.life == holding && ch.valid(s):
			others--
		case s.life != holding && (s.life != over || s.released):
			continue
		}
		if others >= ch.m.Clients {
			continue
		}
		out = append(out, move{kind: rejoin, slot: free, arg: i << 1})
		if ch.m.AnyRank {
			out = append(out, move{kind: rejoin, slot: free, arg: i<<1 | 1})
		}
	}
	return out
}

// standing reports whether the release that began an attempt may have its verdict.
func (ch *choices) standing(s *slot) bool {
	var said quorum.Set
	for n := range ch.m.Nodes {
		if !s.cells[n].queue.behind {
			said |= quorum.SetOf(n)
		}
	}
	cfg := ch.m.quorum()
	return cfg.HasQuorum(said)
}

// writers is how many attempts so far were writers'.
func (ch *choices) writers(st *state) (n int) {
	for i := range ch.m.Attempts {
		if s := &st.slots[i]; s.life != unused && s.writes(ch.m) {
			n++
		}
	}
	return n
}

// besideMoves appends what a client can do about a vote besides the renewal.
func (ch *choices) besideMoves(s *slot, i uint8, out []move) []move {
	b := &s.beside
	switch {
	case b.vote != 0:
		if next, ok := ch.vote(b.vote).Next(); ok && next <= at(b.age) {
			out = append(out, move{kind: tickBeside, slot: i})
		}
		out = append(out, move{kind: cancelBeside, slot: i})
	case s.life != holding || !ch.valid(s):
	default:
		if int(b.begun) < ch.m.Extends {
			out = append(out, move{kind: beginBeside, slot: i, arg: uint8(quorum.Extend)})
		}
	}
	return out
}

// operator appends the steps of the operator that replaces the list. The nodes are notified
// of both lists, one after the other and possibly not all. When a majority of each was
// notified, and leases from before have ended, nodes are notified of the new list.
func (ch *choices) operator(st *state, out []move) []move {
	for i := range ch.m.Nodes {
		n := uint8(i)
		if l := st.nodes[n].list; l != knowsBoth && l != knowsNew {
			out = append(out, move{kind: tellBoth, node: n})
		}
		if st.switching && st.wait == 0 && newNodes.Has(i) && st.nodes[n].list != knowsNew {
			out = append(out, move{kind: tellNew, node: n})
		}
	}
	return out
}

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
