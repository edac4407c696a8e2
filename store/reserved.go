package store

import "strings"

// ownPrefix begins the keys that belong to a server as a whole.
const ownPrefix = "leasehold:"

// What belongs to the lock x is at the key {x}: and one of these words (token
// counter, line, tokens that a guard has seen), or one of these prefixes and an
// owner (tombstone, place in the line).
var (
	ownWords    = []string{"token", "line", "waits", "fence"}
	ownPrefixes = []string{"gone:", "place:"}
)

// reserved reports whether name is that of a key that the stores or the guards
// may keep for themselves.
func reserved(name string) bool {
	if strings.HasPrefix(name, ownPrefix) {
		return true
	}
	rest, braced := strings.CutPrefix(name, "{")
	for braced {
		// x may contain "}:" as well, so each of them may be the one that ends it.
		if _, rest, braced = strings.Cut(rest, "}:"); braced && isOwn(rest) {
			return true
		}
	}
	return false
}

// isOwn reports whether {x}: followed by rest is a key of ours.
func isOwn(rest string) bool {
	for _, w := range ownWords {
		if rest == w {
			return true
		}
	}
	for _, p := range ownPrefixes {
		if strings.HasPrefix(rest, p) {
			return true
		}
	}
	return false
}
