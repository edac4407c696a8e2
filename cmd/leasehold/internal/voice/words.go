package voice

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Count returns a number of things in words: "1 permit", "2 permits".
func Count[N int | int64](n N, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// Shown returns s in a form that can be printed anywhere. It quotes s if it is
// empty, has spaces, or has characters that a terminal could act on.
func Shown(s string) string {
	q := strconv.QuoteToGraphic(s)
	if s == "" || len(q) != len(s)+2 {
		return q
	}
	for _, r := range s {
		if r == ' ' {
			return q
		}
	}
	return s
}

// Short formats d as people write it: 1h, not 1h0m0s.
func Short(d time.Duration) string {
	s := Brief(d)
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// elided returns name without its middle if it is long.
func elided(name string) string {
	const most, end = 24, 12
	runes := []rune(name)
	if len(runes) <= most {
		return name
	}
	return string(runes[:most-end-3]) + "..." + string(runes[len(runes)-end:])
}

// Brief rounds d to the second, or as store.Round does if it is shorter.
func Brief(d time.Duration) string {
	if d >= time.Second {
		return d.Round(time.Second).String()
	}
	return store.Round(d).String()
}
