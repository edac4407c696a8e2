package sim

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// held is the lease of a lock at a node.
type held struct {
	owner  int
	weight int64
	left   time.Duration // by the node's clock
}

// held returns the leases of a lock there.
func (n *node) held(lock int) []held {
	value, left, ok := n.server.Value(lockName(lock))
	switch {
	case !ok:
		return nil
	case !strings.HasPrefix(value, " "):
		return []held{{n.w.hist.number(ownerOf(value)), 1, left}}
	}
	return n.heldOf(value)
}

// heldOf reads the value of a lock that several can hold, as readRecord in the scripts
// describes it.
func (n *node) heldOf(value string) (all []held) {
	value = recordBegins.ReplaceAllString(value, "")
	for value != "" {
		f := recordHold.FindStringSubmatch(value)
		if f == nil {
			panic("sim: not the record of a lock: " + value)
		}
		number := func(i int) int64 { v, _ := strconv.ParseInt(f[i], 10, 64); return v }
		length := number(1)
		rest := value[len(f[0]):]
		end := clock.Instant(time.Duration(number(3)) * time.Millisecond)
		if left := end.Sub(n.clock()); left > 0 {
			all = append(all, held{n.w.hist.number(ownerOf(rest[:length])), number(2), left})
		}
		value = rest[length:]
	}
	return all
}

var (
	recordBegins = regexp.MustCompile(`^ [sr]\d+ \d+`)
	// The length of the value, the token, the weight, the end and four more fields.
	recordHold = regexp.MustCompile(`^ (\d+) \d+ (\d+) (\d+) \S* \S* \S* \S* `)
	// What a place in the queue of such a lock wants: see readWish in the scripts.
	recordWish = regexp.MustCompile(`  [sr]\d+\S* (\d+) `)
)

// heldBy returns the lease of an owner there.
func (n *node) heldBy(lock, owner int) (held, bool) {
	for _, h := range n.held(lock) {
		if h.owner == owner {
			return h, true
		}
	}
	return held{}, false
}

// mostWanted is the largest weight of those that wait for a lock there: nobody may pass
// them.
func (n *node) mostWanted(lock int) (most int64) {
	for _, key := range n.server.Keys() {
		if l, _, ok := placeOf(key); ok && l == lock {
			text, _, _ := n.server.Value(key)
			if f := recordWish.FindStringSubmatch(text); f != nil {
				weight, _ := strconv.ParseInt(f[1], 10, 64)
				most = max(most, weight)
			}
		}
	}
	return most
}
