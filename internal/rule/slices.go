package rule

import "slices"

// Records share their slices with the records that they were made from, so none
// of these functions writes into the slice it is given. An empty result is nil,
// so that equal records compare equal, however they were made.

// with returns s with v appended.
func with[E any](s []E, v E) []E { return append(slices.Clip(s), v) }

// without returns s without element i, or s itself if i is negative.
func without[E any](s []E, i int) []E {
	if i < 0 {
		return s
	}
	return slices.Concat(s[:i], s[i+1:])
}

// replaced returns s with v as element i.
func replaced[E any](s []E, i int, v E) []E {
	s = slices.Clone(s)
	s[i] = v
	return s
}

// living returns the elements of s for which keep is true; s itself if that is
// all of them.
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
