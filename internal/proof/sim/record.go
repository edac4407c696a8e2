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
func recordHolds(n *node, lock int, value string, left time.Duration) (all []held) {
	if f := recordAlone.FindStringSubmatch(value); f != nil {
		return []held{{owner: n.w.hist.number(f[4]), weight: number(f[2]), left: left, number: 1, token: uint64(number(f[1])), slots: f[3]}}
	}
	name := "{" + lockName(lock) + "}:"
	ends := n.server.Scores(name + "ends")
	fields := n.server.Fields(name + "held")
	for _, owner := range slices.Sorted(maps.Keys(fields)) {
		f := recordGrant.FindStringSubmatch(fields[owner])
		if f == nil {
			continue // the sums
		}
		end := clock.Instant(time.Duration(ends[endsMember(f[1], owner)]) * time.Millisecond)
		if left := end.Sub(n.clock()); left > 0 {
			all = append(all, held{
				owner: n.w.hist.number(owner), weight: number(f[3]), left: left,
				number: number(f[1]), token: uint64(number(f[2])), slots: f[4],
			})
		}
	}
	return all
}

// recordFault returns how the sums in the record of a lock that several can hold differ from its
// grants, empty if they do not. With sums too small the lock has too many holders, and with sums
// too large it looks full when it is free.
func recordFault(n *node, lock int) string {
	value, _, ok := n.server.Value(lockName(lock))
	if !ok || !isRecord(value) || recordAlone.MatchString(value) {
		return ""
	}
	fields := n.server.Fields("{" + lockName(lock) + "}:held")
	f := recordSums.FindStringSubmatch(fields[" "])
	if f == nil {
		return fmt.Sprintf("it has the sums %q", fields[" "])
	}
	ends := n.server.Scores("{" + lockName(lock) + "}:ends")
	weight, taken := int64(0), map[int64]bool{}
	for owner, text := range fields {
		if g := recordGrant.FindStringSubmatch(text); g != nil {
			weight += number(g[3])
			if _, ok := ends[endsMember(g[1], owner)]; !ok {
				return fmt.Sprintf("the grant of %s has no end", owner)
			}
			for slot := range strings.SplitSeq(g[4], ",") {
				taken[number(slot)] = true
			}
		} else if owner != " " {
			return fmt.Sprintf("the grant of %s is %q", owner, text)
		}
	}
	if used := number(f[1]); used != weight {
		return fmt.Sprintf("%d of it are counted, and its grants have %d", used, weight)
	}
	for slot, digit := range f[2] {
		if (digit == '1') != taken[int64(slot)] {
			return fmt.Sprintf("slots %s are marked, and grants have %v", f[2], slices.Sorted(maps.Keys(taken)))
		}
		delete(taken, int64(slot))
	}
	if len(taken) > 0 {
		return fmt.Sprintf("slots %s are marked, and not %v", f[2], slices.Sorted(maps.Keys(taken)))
	}
	return ""
}

// wishOf is the weight that a place in the queue of such a lock is for: see readWish in the
// scripts. It is 0 for a place in another queue.
func wishOf(place string) int64 {
	if f := recordWish.FindStringSubmatch(place); f != nil {
		return number(f[1])
	}
	return 0
}

// endsMember is the member of {L}:ends that a grant has.
func endsMember(count, owner string) string { return fmt.Sprintf("%010d %s", number(count), owner) }

func number(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64) // the pattern has only digits
	return n
}

var (
	// The number, the token, the weight and five more fields, of which the last is the value.
	recordGrant = regexp.MustCompile(`^(\d+) (\d+) (\d+) \d+ (\S+) [01] \S* `)
	recordAlone = regexp.MustCompile(`^ [sr]\d+ 0 \d+ (\d+) (\d+) \d+ \d+ (\S+) 0  (\S+)`) // the lock's key, with its only grant
	recordSums  = regexp.MustCompile(`^(\d+) \d+ \d+ ([01]*)$`)
	recordWish  = regexp.MustCompile(`  [sr]\d+\S* (\d+) `)
)
