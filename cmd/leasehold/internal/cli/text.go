package cli

import "strconv"

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
