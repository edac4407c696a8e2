package rule

import "slices"

// Records share their slices with the records they came from, so none of these
// ever writes into the slice it was given. An empty result is nil: equal
// records then look equal, whichever way they came about.

// with is s and v after it.
func with[E any](s []E, v E) []E { return append(slices.Clip(s), v) }

// without is s but for element i; s itself when i is negative.
func without[E any](s []E, i int) []E {
	if i < 0 {
		return s
	}
	return slices.Concat(s[:i], s[i+1:])
}

// replaced is s with v as element i.
func replaced[E any](s []E, i int, v E) []E {
	s = slices.Clone(s)
	s[i] = v
	return s
}

// living are the elements of s that keep says are, s itself when all are.
func living[E any](s []E, keep func(E) bool) []E {
	if !slices.ContainsFunc(s, func(v E) bool { return !keep(v) }) {
		return s
	}
	var l []E
	for _, v := range s {
		if keep(v) {
			l = append(l, v)
		}
	}
	return l
}
