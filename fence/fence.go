// Package fence holds the fencing token and the one rule by which a protected
// resource judges it: refuse a token smaller than the largest one seen, accept
// an equal one, remember a larger one. It knows nothing of locks, so that a
// resource can import it without importing a lock client.
//
// The rule protects a write only if both happen in one atomic step. Packages
// guard/sqlguard, guard/redisguard and guard/httpguard do that for databases,
// Redis and HTTP servers.
package fence

import (
	"errors"
	"fmt"
	"strconv"
)

// Token numbers the grants of one lock. Every later grant of the same lock has
// a strictly larger token; renewing a lease never changes its token. Tokens of
// different locks are not comparable. The zero Token was never granted.
//
// Tokens stay below 2^53, so they survive JSON, Lua and floating point.
type Token uint64

// Max is the largest possible token.
const Max Token = 1<<53 - 1

// Errors of this package, to be matched with errors.Is.
var (
	// ErrStale means that the resource has seen a larger token. The error is
	// always a *StaleError.
	ErrStale = errors.New("fencing token is older than one already seen")
	// ErrInvalid means that the offered value is not a fencing token.
	ErrInvalid = errors.New("not a fencing token")
)

// StaleError reports that a resource refused a token because it had seen a
// larger one. It matches ErrStale. The client that offered the token has lost
// its lease; trying again with the same token cannot succeed.
type StaleError struct {
	// Resource is the name of the resource, as its guard was given it.
	Resource string
	// Offered is the token that was refused.
	Offered Token
	// Highest is the largest token the resource had seen.
	Highest Token
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("%q refuses fencing token %s: it has seen %s, so the lease is over and a later holder has written", e.Resource, e.Offered, e.Highest)
}

// Is reports whether target is ErrStale.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// Parse returns the token that s represents in decimal. The error matches
// ErrInvalid.
func Parse(s string) (Token, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %.40q: a whole number from 1 to %s is needed", ErrInvalid, s, Max)
	}
	if err := Token(n).Check(); err != nil {
		return 0, err
	}
	return Token(n), nil
}

// String returns the token in decimal, as the command exports it to its child.
func (t Token) String() string { return strconv.FormatUint(uint64(t), 10) }

// Check returns nil if t can have been granted, and otherwise an error that
// matches ErrInvalid.
func (t Token) Check() error {
	if t == 0 {
		return fmt.Errorf("%w: it is zero, which no lease ever has: pass the token of the lease", ErrInvalid)
	}
	if t > Max {
		return fmt.Errorf("%w: %s is larger than %s", ErrInvalid, t, Max)
	}
	return nil
}

// Stale reports whether a resource that has already seen highest must refuse t.
// A smaller token is refused, an equal one is the same holder again, and a
// larger one is a later holder.
func (t Token) Stale(highest Token) bool { return t < highest }

// Admit decides whether the named resource accepts a write that comes with the
// token offered. highest is the largest token that the resource has seen, or
// zero if none. Admit returns the token to remember from now on. If it returns
// an error, the write must not happen and the returned token is highest. The
// error is a *StaleError or matches ErrInvalid.
func Admit(resource string, highest, offered Token) (Token, error) {
	if err := offered.Check(); err != nil {
		return highest, fmt.Errorf("%q: %w", resource, err)
	}
	if offered.Stale(highest) {
		return highest, &StaleError{Resource: resource, Offered: offered, Highest: highest}
	}
	return offered, nil
}
