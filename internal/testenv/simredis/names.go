package simredis

import (
	"slices"
	"strings"
	"time"
)

// names returns the names of all keys that have not expired, sorted.
func (k *keyspace) names(now time.Time) (names []string) {
	for name, e := range k.data {
		if !k.over(e, now) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (k *keyspace) matching(a []string) reply { return bulks(k.match(a[0])) }

// match returns the names of the keys that match a pattern.
func (k *keyspace) match(pattern string) (names []string) {
	for _, name := range k.names(k.now) {
		if glob(pattern, name) {
			names = append(names, name)
		}
	}
	return names
}

// glob reports whether a pattern matches a name, byte by byte. It does not support classes.
func glob(pattern, name string) bool {
	for pattern != "" {
		c := pattern[0]
		pattern = pattern[1:]
		switch {
		case c == '*':
			for i := range len(name) + 1 {
				if glob(pattern, name[i:]) {
					return true
				}
			}
			return false
		case name == "":
			return false
		case c == '?':
			name = name[1:]
			continue
		case c == '\\' && pattern != "":
			c, pattern = pattern[0], pattern[1:]
		}
		if name[0] != c {
			return false
		}
		name = name[1:]
	}
	return name == ""
}

// scan returns all keys at once.
func (k *keyspace) scan(a []string) reply {
	pattern := "*"
	for i := 1; i+1 < len(a); i++ {
		if strings.EqualFold(a[i], "MATCH") {
			pattern = a[i+1]
		}
	}
	return array(bulk("0"), bulks(k.match(pattern)))
}
