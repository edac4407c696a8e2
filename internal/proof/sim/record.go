package sim

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// recordHold is a grant in the value of a lock that several can hold.
type recordHold struct {
	value  string
	weight int64
	end    clock.Instant // by the node's clock
}

// isRecord reports whether a lock's value is that of a lock that several can hold.
func isRecord(value string) bool { return strings.HasPrefix(value, " ") }

// readRecord reads such a value, as readRecord in the scripts describes it.
func readRecord(text string) (all []recordHold) {
	text = recordBegins.ReplaceAllString(text, "")
	for text != "" {
		f := recordGrant.FindStringSubmatch(text)
		if f == nil {
			panic("sim: not the record of a lock: " + text)
		}
		text = text[len(f[0]):]
		length := number(f[1])
		all = append(all, recordHold{text[:length], number(f[2]), clock.Instant(time.Duration(number(f[3])) * time.Millisecond)})
		text = text[length:]
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
	recordBegins = regexp.MustCompile(`^ [sr]\d+ \d+`)
	// The length of the value, the token, the weight, the end and four more fields.
	recordGrant = regexp.MustCompile(`^ (\d+) \d+ (\d+) (\d+) \S* \S* \S* \S* `)
	recordWish  = regexp.MustCompile(`  [sr]\d+\S* (\d+) `)
)
