package explore

import (
	"encoding/binary"
	"math/bits"
	"sync"
)

// print is a fingerprint of an encoded state. Two states with the same one
// would be taken for the same: at 128 bits and a hundred million states, the
// chance of that ever happening is below 1 in 10^22.
type print [2]uint64

// fingerprint hashes eight bytes at a time, twice over, by multiplication.
func fingerprint(b []byte) print {
	h1, h2 := uint64(0x243f6a8885a308d3)^uint64(len(b)), uint64(0x13198a2e03707344)+uint64(len(b))
	var tail [8]byte
	for len(b) > 0 {
		if len(b) < 8 {
			copy(tail[:], b)
			b = tail[:]
		}
		v := binary.LittleEndian.Uint64(b)
		hi, lo := bits.Mul64(v^0xa4093822299f31d0, h1^0x082efa98ec4e6c89)
		h1 = hi ^ lo ^ bits.RotateLeft64(h1, 23)
		hi, lo = bits.Mul64(v^0x452821e638d01377, h2^0xbe5466cf34e90c6c)
		h2 = hi ^ lo ^ bits.RotateLeft64(h2, 41)
		b = b[8:]
	}
	hi, lo := bits.Mul64(h1^0xc0ac29b7c97c50dd, h2|1)
	h1 ^= hi
	hi2, lo2 := bits.Mul64(h2^0x3f84d5b5b5470917, lo|1)
	return print{h1 ^ lo2, h2 ^ hi2 ^ hi}
}

// ref names a state that was seen: its shard and its place there.
type ref uint32

const (
	shardBits = 6
	noRef     = ^ref(0)
)

// seen is the set of all states met so far, by fingerprint, and from which
// other state each was first reached. It is safe for concurrent use.
type seen [1 << shardBits]shard

type shard struct {
	mu      sync.Mutex
	table   []uint32 // index into prints, plus one
	prints  []print
	parents []ref
}

// add adds a state, and reports whether it is new.
func (s *seen) add(p print, parent ref) (ref, bool) {
	which := p[1] >> (64 - shardBits)
	sh := &s[which]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if len(sh.prints)*4 >= len(sh.table)*3 {
		sh.grow()
	}
	mask := uint64(len(sh.table) - 1)
	for i := p[0] & mask; ; i = (i + 1) & mask {
		at := sh.table[i]
		if at == 0 {
			sh.prints = append(sh.prints, p)
			sh.parents = append(sh.parents, parent)
			sh.table[i] = uint32(len(sh.prints))
			if len(sh.prints) >= 1<<(32-shardBits) {
				panic("explore: more states than can be numbered")
			}
			return ref(len(sh.prints)-1)<<shardBits | ref(which), true
		}
		if sh.prints[at-1] == p {
			return ref(at-1)<<shardBits | ref(which), false
		}
	}
}

func (sh *shard) grow() {
	sh.table = make([]uint32, max(1024, 2*len(sh.table)))
	mask := uint64(len(sh.table) - 1)
	for at, p := range sh.prints {
		i := p[0] & mask
		for sh.table[i] != 0 {
			i = (i + 1) & mask
		}
		sh.table[i] = uint32(at) + 1
	}
}

// path returns how a state was reached: the fingerprints from the first state to it.
func (s *seen) path(r ref) []print {
	var reversed []print
	for r != noRef {
		sh := &s[r&(1<<shardBits-1)]
		at := r >> shardBits
		reversed = append(reversed, sh.prints[at])
		r = sh.parents[at]
	}
	for i, j := 0, len(reversed)-1; i < j; i, j = i+1, j-1 {
		reversed[i], reversed[j] = reversed[j], reversed[i]
	}
	return reversed
}

func (s *seen) len() (n int) {
	for i := range s {
		n += len(s[i].prints)
	}
	return n
}
