package explore

import (
	"encoding/binary"

	"github.com/leasehold-dev/leasehold/internal/quorum"
)

func (c *cell) pack() uint64 {
	if *c == (cell{}) {
		return 0
	}
	var b fields
	b.put(uint64(c.key), 3)
	b.put(uint64(c.tombstone), 3)
	b.put(uint64(c.acquire.stage), 3)
	b.put(uint64(c.acquire.token), 8)
	for _, msg := range c.confirm {
		b.put(uint64(msg.stage), 3)
		b.put(uint64(msg.token), 8)
	}
	b.put(uint64(c.extend.stage), 3)
	b.put(uint64(c.strays[0]), 2)
	b.put(uint64(c.strays[1]), 2)
	b.put(bit(c.again)|bit(c.freed)<<1|bit(c.release)<<2|bit(c.bury)<<3, 4)
	b.put(uint64(c.heals), 2)
	return b.word
}

func unpackCell(word uint64) cell {
	if word == 0 {
		return cell{}
	}
	b := fields{word: word}
	c := cell{key: uint8(b.get(3)), tombstone: uint8(b.get(3))}
	c.acquire = message{stage(b.get(3)), token(b.get(8))}
	for i := range c.confirm {
		c.confirm[i] = message{stage(b.get(3)), token(b.get(8))}
	}
	c.extend.stage = stage(b.get(3))
	c.strays = [2]uint8{uint8(b.get(2)), uint8(b.get(2))}
	flags := b.get(4)
	c.again, c.freed, c.release, c.bury = flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0
	c.heals = uint8(b.get(2))
	return c
}

func (n *node) pack() uint64 {
	var b fields
	b.put(uint64(n.counter), 8)
	b.put(uint64(n.quarantined), 4)
	b.put(uint64(n.ahead), 4)
	b.put(uint64(n.unread), maxNodes)
	b.put(uint64(n.read), 8)
	b.put(uint64(n.list), 2)
	return b.word
}

func unpackNode(word uint64) node {
	b := fields{word: word}
	return node{token(b.get(8)), uint8(b.get(4)), uint8(b.get(4)), uint8(b.get(maxNodes)), token(b.get(8)), role(b.get(2))}
}

// pack is all of the slot but its machines and cells.
func (s *slot) pack() uint64 {
	var b fields
	b.put(uint64(s.life), 3)
	b.put(bit(s.released)|bit(s.short)<<1|bit(s.repeated)<<2|bit(s.unclaimed)<<3, 4)
	b.put(uint64(s.age), 6)
	b.put(uint64(s.voteAt), 6)
	b.put(uint64(s.renewals), 3)
	b.put(uint64(s.token), 8)
	b.put(uint64(s.floor), 8)
	b.put(uint64(s.propose), 8)
	b.put(uint64(s.role), 2)
	return b.word
}

func (s *slot) unpack(word uint64) {
	b := fields{word: word}
	s.life = life(b.get(3))
	flags := b.get(4)
	s.released, s.short, s.repeated, s.unclaimed = flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0
	s.age, s.voteAt, s.renewals = uint8(b.get(6)), uint8(b.get(6)), uint8(b.get(3))
	s.token, s.floor, s.propose = token(b.get(8)), token(b.get(8)), token(b.get(8))
	s.role = role(b.get(2))
}

// rest is what belongs to no node and no slot.
func (st *state) rest() uint64 {
	var b fields
	b.put(uint64(st.top), 8)
	b.put(uint64(st.used), 32)
	b.put(uint64(st.crashes), 4)
	b.put(uint64(st.losses), 4)
	b.put(uint64(st.jumps), 4)
	b.put(uint64(st.twice), 4)
	b.put(bit(st.switching), 1)
	b.put(uint64(st.wait), 3)
	b.put(uint64(st.doubts), 2)
	b.put(uint64(st.skips), 2)
	return b.word
}

// These flags say what follows in an encoded slot.
const (
	hasMachine = 1 << (7 - iota)
	hasVote
	hasBeside
)

// encode appends the state of m's world to out. Two states are the same if and
// only if their encodings are.
func (m *Model) encode(st *state, out []byte) []byte {
	le := binary.LittleEndian
	out = le.AppendUint64(out, st.rest())
	if m.hasKind() {
		for _, t := range st.tops {
			out = append(out, byte(t))
		}
	}
	for n := range m.Nodes {
		out = le.AppendUint32(out, uint32(st.nodes[n].pack()))
	}
	for i := range m.Attempts {
		s := &st.slots[i]
		var cells [maxNodes]uint64
		var mask uint8
		for n := range m.Nodes {
			if cells[n] = s.cells[n].pack(); cells[n] != 0 || m.Waits && s.cells[n].queue != (queue{}) || s.cells[n].share != (share{}) {
				mask |= 1 << n
			}
		}
		if s.machine != 0 {
			mask |= hasMachine
		}
		if s.vote != 0 {
			mask |= hasVote
		}
		other := s.packedBeside(m)
		if other != 0 {
			mask |= hasBeside
		}
		out = append(out, mask)
		out = le.AppendUint64(out, s.pack())[:len(out)+6] // its upper bytes are zero
		if m.Waits {
			out = append(out, s.rank<<1|uint8(bit(s.gaveWay)))
		}
		if m.hasKind() {
			out = append(out, s.packedKind())
		}
		if s.machine != 0 {
			out = le.AppendUint32(out, uint32(s.machine))
		}
		if s.vote != 0 {
			out = le.AppendUint32(out, uint32(s.vote))
		}
		for n := range m.Nodes {
			if mask&(1<<n) == 0 {
				continue
			}
			out = le.AppendUint64(out, cells[n])
			if m.Waits {
				out = le.AppendUint64(out, s.cells[n].queue.pack())
			}
			if m.hasKind() {
				out = le.AppendUint16(out, uint16(s.cells[n].share.pack()))
			}
			if m.Breaks {
				out = append(out, s.cells[n].share.packedBreak())
			}
		}
		if other != 0 {
			out = le.AppendUint64(out, other)
		}
	}
	return out
}

// decode takes a state off the front of in.
func (m *Model) decode(in []byte, st *state) []byte {
	le := binary.LittleEndian
	*st = state{}
	b := fields{word: le.Uint64(in)}
	st.top, st.used = token(b.get(8)), uint32(b.get(32))
	st.crashes, st.losses, st.jumps, st.twice = uint8(b.get(4)), uint8(b.get(4)), uint8(b.get(4)), uint8(b.get(4))
	st.switching, st.wait = b.get(1) == 1, uint8(b.get(3))
	st.doubts, st.skips = uint8(b.get(2)), uint8(b.get(2))
	in = in[8:]
	if m.hasKind() {
		for i := range st.tops {
			st.tops[i] = token(in[i])
		}
		in = in[maxPermits:]
	}
	for n := range m.Nodes {
		st.nodes[n] = unpackNode(uint64(le.Uint32(in)))
		in = in[4:]
	}
	for i := range m.Attempts {
		s := &st.slots[i]
		mask := in[0]
		s.unpack(uint64(le.Uint32(in[1:])) | uint64(le.Uint16(in[5:]))<<32)
		in = in[7:]
		if m.Waits {
			s.rank, s.gaveWay, in = in[0]>>1, in[0]&1 == 1, in[1:]
		}
		if m.hasKind() {
			s.reads, s.agreed, s.hopeless, s.brokeLate, in = in[0]&1 == 1, in[0]>>1&7, in[0]&16 != 0, in[0]&32 != 0, in[1:]
		}
		if mask&hasMachine != 0 {
			s.machine, in = machine(le.Uint32(in)), in[4:]
		}
		if mask&hasVote != 0 {
			s.vote, in = machine(le.Uint32(in)), in[4:]
		}
		for n := range m.Nodes {
			if mask&(1<<n) != 0 {
				s.cells[n], in = unpackCell(le.Uint64(in)), in[8:]
				if m.Waits {
					s.cells[n].queue, in = unpackQueue(le.Uint64(in)), in[8:]
				}
				if m.hasKind() {
					s.cells[n].share, in = unpackShare(uint64(le.Uint16(in))), in[2:]
				}
				if m.Breaks {
					s.cells[n].share.unpackBreak(in[0])
					in = in[1:]
				}
			}
		}
		if mask&hasBeside != 0 {
			s.unpackBeside(m, le.Uint64(in))
			in = in[8:]
		}
	}
	return in
}

func (h *share) pack() uint64 {
	var b fields
	b.put(uint64(h.slot), 2)
	b.put(uint64(h.said), 2)
	b.put(uint64(h.move.stage), 3)
	b.put(uint64(h.move.token), 8)
	b.put(bit(h.always), 1)
	return b.word
}

func unpackShare(word uint64) share {
	b := fields{word: word}
	return share{slot: uint8(b.get(2)), said: uint8(b.get(2)), move: message{stage(b.get(3)), token(b.get(8))}, always: b.get(1) == 1}
}

// packedKind is what a slot has besides in a world with a Kind.
func (s *slot) packedKind() byte {
	return s.agreed<<1 | byte(bit(s.reads)|bit(s.hopeless)<<4|bit(s.brokeLate)<<5)
}

// packedBeside is a vote besides the renewal, and its messages as a number.
func (s *slot) packedBeside(m *Model) uint64 {
	b := &s.beside
	var f fields
	f.put(uint64(b.vote), 32)
	f.put(uint64(b.op), 3)
	f.put(uint64(b.age), 5)
	f.put(uint64(b.begun), 3)
	for n := range m.Nodes {
		f.put(uint64(s.cells[n].beside), 3)
	}
	return f.word
}

// unpackBeside sets it. The cells have been unpacked.
func (s *slot) unpackBeside(m *Model, word uint64) {
	f := fields{word: word}
	s.beside = beside{vote: machine(f.get(32)), op: quorum.Op(f.get(3)), age: uint8(f.get(5)), begun: uint8(f.get(3))}
	for n := range m.Nodes {
		s.cells[n].beside = stage(f.get(3))
	}
}

func (h *share) packedBreak() byte { return byte(bit(h.broken)) | byte(h.breaks)<<1 }

func (h *share) unpackBreak(b byte) { h.broken, h.breaks = b&1 != 0, breaking(b>>1) }
