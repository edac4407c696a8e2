package cli

import "strconv"

// shown is s as it can be printed anywhere: as it is when it is plain, quoted
// when it is empty or has spaces or anything a terminal could act on.
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
