package redisstore

import "strings"

// A Redis Cluster divides the keys over slots, and the slots over its masters. What
// belongs to a lock is in one slot, and so on one server: L, and {L}:..., of which
// the part in braces alone counts.

// slots is how many there are.
const slots = 16384

// slotOf is the slot of a key, or of a sharded channel: the CRC of it, or of what
// is in its first braces if that is anything.
func slotOf(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for i := range len(key) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^key[i]]
	}
	return int(crc % slots)
}

// crcTable is that of CRC-16/XMODEM.
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

// tagSize is how long a tag is.
const tagSize = 4

// tagIn finds a tag whose slot is among those wanted, beginning somewhere; empty: no
// slot is.
func tagIn(wanted func(slot int) bool, begin int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz234567" // 1<<20 tags, some for each slot
	var tag [tagSize]byte
	for i := range 1 << (5 * tagSize) {
		n := uint(i + begin)
		for j := range tag {
			tag[j] = letters[n>>(5*j)%32]
		}
		if wanted(slotOf(string(tag[:]))) {
			return string(tag[:])
		}
	}
	return ""
}

// clusterName is the name under which a cluster keeps a lock, which is its own but for
// names with a }: what is in the first braces of such a name, or of {name}:token, is
// not the whole of it, and the keys of the lock would be in different slots. Of these
// } and % are written as in a URL, with a % at the end; and so are those that end
// with a % already, which could otherwise be taken for them. Other clients do not
// know of that, and exclude us for all other names only.
func clusterName(name string) string {
	if !strings.Contains(name, "}") && !strings.HasSuffix(name, "%") {
		return name
	}
	return braceless.Replace(name) + "%"
}

// nameInCluster is the name of the lock that a cluster keeps under key, if any.
func nameInCluster(key string) (name string, ok bool) {
	inner, encoded := strings.CutSuffix(key, "%")
	if !encoded {
		return key, !strings.Contains(key, "}")
	}
	name = braced.Replace(inner)
	return name, clusterName(name) == key
}

var (
	braceless = strings.NewReplacer("%", "%25", "}", "%7D")
	braced    = strings.NewReplacer("%25", "%", "%7D", "}")
)
