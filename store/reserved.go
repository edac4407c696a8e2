package store

import "strings"

// ownPrefix begins the keys that belong to a server as a whole.
const ownPrefix = "leasehold:"

// The keys that belong to lock x are {x}: followed by one of ownWords (token
// counter, queue of waiters, tokens that a guard has seen, the attempt that made
// the grant, the lease that was broken last), or by one of
// ownPrefixes and an owner (tombstone, waiter's place).
var (
	ownWords    = []string{"token", "line", "waits", "fence", "made", "broken", "held", "ends", "ranks"}
	ownPrefixes = []string{"gone:", "place:"}
)

// reserved reports whether a store or a guard may use a key called name for
// itself.
func reserved(name string) bool {
	if strings.HasPrefix(name, ownPrefix) {
		return true
	}
	rest, braced := strings.CutPrefix(name, "{")
	for braced {
		// x may itself contain "}:", so every "}:" may be the one that ends it.
		if _, rest, braced = strings.Cut(rest, "}:"); braced && isOwn(rest) {
			return true
		}
	}
	return false
}

// isOwn reports whether {x}: followed by rest is one of Leasehold's own keys.
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
