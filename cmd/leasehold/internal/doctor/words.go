package doctor

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// span formats a duration for people.
func span(d time.Duration) string {
	if d.Abs() >= time.Second {
		return store.Round(d).String()
	}
	return d.Round(10 * time.Microsecond).String()
}

func count(n int, what string) string {
	switch {
	case what == "":
		return strconv.Itoa(n)
	case n == 1:
		return "one " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

func manifold(n int) string {
	if n == 2 {
		return "twice"
	}
	return strconv.Itoa(n) + " times"
}

func list(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// size formats a number of bytes.
func size(b uint64) string {
	for i, unit := range []string{"GiB", "MiB", "KiB"} {
		if one := uint64(1) << (30 - 10*i); b >= one {
			return fmt.Sprintf("%.4g %s", float64(b)/float64(one), unit)
		}
	}
	return strconv.FormatUint(b, 10) + " bytes"
}

// quoted quotes a key so that it can be printed anywhere, cut to a readable
// length.
func quoted(key string) string {
	const most = 80
	if len(key) > most {
		key = key[:most] + "..."
	}
	return strconv.QuoteToGraphic(key)
}
