package cluster

import (
	"strings"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// A Redis Cluster divides keys into slots, and assigns the slots to its masters. All keys
// of a lock are in one slot, and so on one server: L, and {L}:..., of which only the part
// in braces counts.

// SlotOf returns the slot of a key or a sharded channel: the CRC of the text between its
// first braces, or of all of it if there is no such text.
func SlotOf(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for i := range len(key) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^key[i]]
	}
	return int(crc % resp.Slots)
}

// crcTable is the table of CRC-16/XMODEM.
var crcTable = func() (table [256]uint16) {
	const polynomial = 0x1021
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			if crc <<= 1; carry {
				crc ^= polynomial
			}
		}
		table[i] = crc
	}
	return table
}()

// TagSize is the length of a tag.
const TagSize = 4

// TagIn finds a tag whose slot is wanted. It tries tags from number begin on; empty:
// there is none.
func TagIn(wanted func(slot int) bool, begin int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz234567" // 1<<20 tags, some for each slot
	var tag [TagSize]byte
	for i := range 1 << (5 * TagSize) {
		n := uint(i + begin)
		for j := range tag {
			tag[j] = letters[n>>(5*j)%32]
		}
		if wanted(SlotOf(string(tag[:]))) {
			return string(tag[:])
		}
	}
	return ""
}

// KeyOf returns the name under which a cluster keeps a lock. It is the lock's own
// name unless that contains a } or ends with a %. The keys of a lock with a } would be in
// different slots, since the text in the first braces of {name}:token is not the whole
// name. In such names } and % are escaped as in a URL, and a % is appended. Names that
// end with a % are escaped too, so that no two locks collide. Clients of other kinds do
// not know this escape; locks with such names do not exclude them.
func KeyOf(name string) string {
	if !strings.Contains(name, "}") && !strings.HasSuffix(name, "%") {
		return name
	}
	return braceless.Replace(name) + "%"
}

// Place returns the key of a lock in a cluster, and its slot.
func Place(name string) (key string, slot int) {
	key = KeyOf(name)
	return key, SlotOf(key)
}

// NameOf is the inverse of KeyOf; ok is false for a key that is no lock.
func NameOf(key string) (name string, ok bool) {
	inner, encoded := strings.CutSuffix(key, "%")
	if !encoded {
		return key, !strings.Contains(key, "}")
	}
	name = braced.Replace(inner)
	return name, KeyOf(name) == key
}

var (
	braceless = strings.NewReplacer("%", "%25", "}", "%7D")
	braced    = strings.NewReplacer("%25", "%", "%7D", "}")
)
