package explore

import (
	"cmp"
	"math/bits"
	"slices"
)

// canonicalizer finds the state that represents all which differ only in names.
type canonicalizer struct {
	*driver
	m *Model
	// Scratch memory.
	st    state
	marks [maxNodes]uint64
	cells [maxSlots][maxNodes]uint64
	order [maxNodes]uint8
	slots []slotOrder
}

type slotOrder struct {
	key [4 + 2*maxNodes]uint64
	at  int
}

// canonical replaces st by the state that represents all states which differ only in
// the names of nodes and attempts. If it does not recognize that two states are the
// same, they stay separate, which only costs time.
func (c *canonicalizer) canonical(st *state) {
	if c.m.Plain {
		return
	}
	if c.spent(st) {
		*st = ended()
		return
	}
	if c.m.Waits {
		closeRanks(st.slots[:c.m.Attempts])
	}
	if !c.m.Lists && !c.m.hasSlots() { // or nodes are not alike
		c.orderNodes(st)
		c.turn(st)
	}
	switch {
	case c.m.ReuseOwner: // the attempts of one client are not interchangeable
	case c.m.Waits: // they know each other
	default:
		c.orderSlots(st)
	}
}

// mix hashes two numbers.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xd1b54a32d192ed03)
	return hi ^ lo
}

// orderNodes finds an order of the nodes that depends only on their contents.
func (c *canonicalizer) orderNodes(st *state) {
	nodes := c.m.Nodes
	for n := range nodes {
		nd := st.nodes[n]
		nd.unread = uint8(bits.OnesCount8(nd.unread)) // which they are depends on the order
		c.marks[n] = mix(nd.pack(), 1)
	}
	for i := range c.m.Attempts {
		s := &st.slots[i]
		attempt, vote := &noMarks, &noMarks
		lease := machine(0)
		switch s.life {
		case asking, lost:
			attempt = c.markAttempt(s.machine)
		case holding:
			vote, lease = c.markVote(s.vote), s.machine
		}
		others := c.markVote(s.beside.vote)
		all := mix(s.pack(), uint64(attempt.orbit)<<32|uint64(vote.orbit)) ^ mix(uint64(lease), 2)
		if s.beside != (beside{}) {
			all ^= mix(uint64(s.beside.op)|uint64(s.beside.age)<<8|uint64(s.beside.begun)<<16, uint64(others.orbit)|6<<40)
		}
		if c.m.ReuseOwner || c.m.Waits {
			all ^= mix(uint64(i)<<8|uint64(s.rank)<<1|bit(s.gaveWay), 4)
		}
		if c.m.hasKind() {
			all ^= mix(uint64(s.packedKind()), 8)
		}
		var around uint64
		for n := range nodes {
			c.cells[i][n] = mix(s.cells[n].pack(), uint64(attempt.node[n])<<32|uint64(vote.node[n]))
			if c.m.Waits {
				c.cells[i][n] ^= mix(s.cells[n].queue.pack(), 5)
			}
			if c.m.hasKind() {
				c.cells[i][n] ^= mix(s.cells[n].share.pack()|uint64(s.cells[n].share.packedBreak())<<16, 7)
			}
			if s.beside.vote != 0 {
				c.cells[i][n] ^= s.cells[n].besideMark(others, n)
			}
			around += mix(c.cells[i][n], 3)
		}
		for n := range nodes {
			c.marks[n] += mix(mix(all, around), c.cells[i][n])
		}
	}
	for n := range nodes {
		c.order[n] = uint8(n)
		for j := n; j > 0 && c.marks[c.order[j]] < c.marks[c.order[j-1]]; j-- {
			c.order[j], c.order[j-1] = c.order[j-1], c.order[j]
		}
	}
}

// turn puts the nodes into that order.
func (c *canonicalizer) turn(st *state) {
	var t turning
	same := true
	for i := range t {
		t[i] = uint8(i)
	}
	for to, from := range c.order[:c.m.Nodes] {
		t[from] = uint8(to)
		same = same && int(from) == to
	}
	if same {
		return
	}
	c.st = *st
	for from := range c.m.Nodes {
		nd := c.st.nodes[from]
		unread := uint8(0)
		for n := range c.m.Nodes {
			if nd.unread&(1<<n) != 0 {
				unread |= 1 << t[n]
			}
		}
		nd.unread = unread
		st.nodes[t[from]] = nd
		for i := range c.m.Attempts {
			st.slots[i].cells[t[from]] = c.st.slots[i].cells[from]
		}
	}
	for i := range c.m.Attempts {
		s := &st.slots[i]
		s.beside.vote = c.turnVote(s.beside.vote, t)
		switch s.life {
		case asking, lost:
			s.machine = c.turnAttempt(s.machine, t)
		case holding:
			s.vote = c.turnVote(s.vote, t)
		}
	}
}

// orderSlots puts the attempts into an order that depends only on what they are.
func (c *canonicalizer) orderSlots(st *state) {
	c.slots = c.slots[:0]
	sorted := true
	for i := range c.m.Attempts {
		s := &st.slots[i]
		o := slotOrder{at: i}
		o.key[0], o.key[1], o.key[2], o.key[3] = s.pack(), uint64(s.machine), uint64(s.vote), s.packedBeside(c.m)
		for n := range c.m.Nodes {
			o.key[4+n] = s.cells[n].pack()
		}
		if c.m.hasKind() {
			o.key[0] |= uint64(s.packedKind()) << 48 // which has room there
			for n := range c.m.Nodes {
				o.key[4+maxNodes+n] = s.cells[n].share.pack() | uint64(s.cells[n].share.packedBreak())<<16
			}
		}
		if s.life == unused { // these come last
			o.key[0] = ^uint64(0)
		}
		c.slots = append(c.slots, o)
		sorted = sorted && (i == 0 || bySlotKey(c.slots[i-1], o) <= 0)
	}
	if sorted {
		return
	}
	slices.SortStableFunc(c.slots, bySlotKey)
	c.st.slots = st.slots
	for i, o := range c.slots {
		st.slots[i] = c.st.slots[o.at]
	}
}

func bySlotKey(a, b slotOrder) int {
	for i := range a.key {
		if d := cmp.Compare(a.key[i], b.key[i]); d != 0 {
			return d
		}
	}
	return 0
}

// besideMark is what a node's part of a vote besides the renewal adds to its mark.
func (c *cell) besideMark(votes *marked, n int) uint64 {
	return mix(uint64(c.beside), uint64(votes.node[n])|1<<40)
}

// ended returns the state that represents all in which nothing can break any more.
func ended() (st state) {
	for i := range st.slots {
		st.slots[i].life = over
	}
	return st
}

// spent reports whether nothing that is checked can break any more: there will be no
// more grants, and nobody holds the lock with an old token.
func (c *canonicalizer) spent(st *state) bool {
	if c.m.Check&(Orphans|Freed|Bounded|Revived) != 0 {
		return false
	}
	holders := 0
	for i := range c.m.Attempts {
		s := &st.slots[i]
		switch s.life {
		case unused, asking:
			return false
		case holding:
			holders++
			renews := s.vote != 0 || int(s.renewals) < c.m.Renewals || c.m.Extends > 0
			if c.m.Check&Renewals != 0 && renews && c.m.older(s.token, s.age) < st.top {
				return false
			}
		}
	}
	return c.m.Check&Mutex == 0 || holders < 2
}

// closeRanks numbers the ranks of the attempts that are left from 0.
func closeRanks(slots []slot) {
	var ranks [maxSlots]uint8
	there := ranks[:0]
	for i := range slots {
		if s := &slots[i]; s.life != unused && !s.isGone() {
			there = append(there, s.rank)
		}
	}
	slices.Sort(there)
	there = slices.Compact(there)
	for i := range slots {
		if s := &slots[i]; s.life != unused && !s.isGone() {
			rank, _ := slices.BinarySearch(there, s.rank)
			s.rank = uint8(rank)
		}
	}
}
