package cli

import (
	"fmt"
	"strconv"
)

// count returns a number of things in words: "1 permit", "2 permits".
func count[N int | int64](n N, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// shown returns s in a form that can be printed anywhere. It quotes s if it is
// empty, has spaces, or has characters that a terminal could act on.
func shown(s string) string {
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
