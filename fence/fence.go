// Package fence holds the fencing token and the one rule by which a protected
// resource judges it: refuse a token smaller than the largest one seen, accept
// an equal one, remember a larger one. It knows nothing of locks, so that a
// resource can import it without importing a lock client.
//
// The rule is only worth something where it is one atomic step with the write
// it protects. Packages guard/sqlguard, guard/redisguard and guard/httpguard do
// that for databases, Redis and HTTP servers.
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

// Max is the largest token there can be.
const Max Token = 1<<53 - 1

// What an error of this package can match with errors.Is.
var (
	// ErrStale: the resource has seen a larger token. Always a *StaleError.
	ErrStale = errors.New("fencing token is older than one already seen")
	// ErrInvalid: what was offered is no fencing token at all.
	ErrInvalid = errors.New("not a fencing token")
)

// StaleError says which token was refused, by what, and which larger one it had
// seen. It matches ErrStale. Whoever gets it has lost its lease, if it has not
// been told already; trying again with the same token is in vain.
type StaleError struct {
	// Resource is what refused, as its guard calls it.
	Resource string
	// Offered is the token that was refused.
	Offered Token
	// Highest is the largest token the resource had seen.
	Highest Token
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("%q refuses fencing token %s: it has seen %s, so the lease is over and a later holder has written", e.Resource, e.Offered, e.Highest)
}

// Is makes errors.Is(err, ErrStale) true.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// Parse reads a token as String writes it. The error matches ErrInvalid.
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

// String is the token in decimal, as the command exports it to its child.
func (t Token) String() string { return strconv.FormatUint(uint64(t), 10) }

// Check says whether t can have been granted; the error matches ErrInvalid.
func (t Token) Check() error {
	if t == 0 {
		return fmt.Errorf("%w: it is zero, which no lease ever has: hand over the token of the lease", ErrInvalid)
	}
	if t > Max {
		return fmt.Errorf("%w: %s is larger than %s", ErrInvalid, t, Max)
	}
	return nil
}

// Stale says whether a resource that has already seen highest must refuse t:
// smaller is refused, equal is the same holder again, larger is a newer one.
func (t Token) Stale(highest Token) bool { return t < highest }

// Admit is the rule for the resource of that name: the largest token seen was
// highest (zero: none yet), and offered comes with a write. It returns what the
// resource has to remember from now on; with an error, the write must not
// happen, and highest stays what it was. The error is a *StaleError, or matches
// ErrInvalid.
func Admit(resource string, highest, offered Token) (Token, error) {
	if err := offered.Check(); err != nil {
		return highest, fmt.Errorf("%q: %w", resource, err)
	}
	if offered.Stale(highest) {
		return highest, &StaleError{Resource: resource, Offered: offered, Highest: highest}
	}
	return offered, nil
}
