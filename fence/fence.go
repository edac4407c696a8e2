// Package fence holds the fencing token and the one rule by which a protected
// resource judges it. It knows nothing of locks, so that a resource can import
// it without importing a lock client.
package fence

import "strconv"

// Token numbers the grants of one lock. Every later grant of the same lock has
// a strictly larger token; renewing a lease never changes its token. Tokens of
// different locks are not comparable. The zero Token was never granted.
//
// Tokens stay below 2^53, so they survive JSON, Lua and floating point.
type Token uint64

// String is the token in decimal, as the command exports it to its child.
func (t Token) String() string { return strconv.FormatUint(uint64(t), 10) }

// Stale says whether a resource that has already seen highest must refuse t:
// smaller is refused, equal is the same holder again, larger is a newer one.
func (t Token) Stale(highest Token) bool { return t < highest }
