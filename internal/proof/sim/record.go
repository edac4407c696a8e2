package sim

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// isRecord reports whether a lock's value is that of a lock that several can hold.
func isRecord(value string) bool { return strings.HasPrefix(value, " ") }

// recordHolds returns the grants of such a lock, as readRecord in the scripts describes them.
func recordHolds(n *node, lock int) (all []held) {
	name := "{" + lockName(lock) + "}:"
	ends := n.server.Scores(name + "ends")
	fields := n.server.Fields(name + "held")
	for _, owner := range slices.Sorted(maps.Keys(fields)) {
		f := recordGrant.FindStringSubmatch(fields[owner])
		if f == nil {
			continue // the sums
		}
		end := clock.Instant(time.Duration(ends[fmt.Sprintf("%010d %s", number(f[1]), owner)]) * time.Millisecond)
		if left := end.Sub(n.clock()); left > 0 {
			all = append(all, held{n.w.hist.number(owner), number(f[2]), left})
		}
	}
	return all
}

// wishOf is the weight that a place in the queue of such a lock is for: see readWish in the
// scripts. It is 0 for a place in another queue.
func wishOf(place string) int64 {
	if f := recordWish.FindStringSubmatch(place); f != nil {
		return number(f[1])
	}
	return 0
}

func number(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64) // the pattern has only digits
	return n
}

var (
	// The number, the token, the weight and five more fields, of which the last is the value.
	recordGrant = regexp.MustCompile(`^(\d+) \d+ (\d+) \d+ \S+ [01] \S* `)
	recordWish  = regexp.MustCompile(`  [sr]\d+\S* (\d+) `)
)
