package store

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/excerpt"
)

// Limits that are the same for every store.
const (
	MaxName  = 1024             // bytes of Request.Name
	MaxOwner = 256              // bytes of Request.Owner
	MaxMeta  = 4096             // bytes of Request.Meta
	MinTTL   = time.Millisecond // shortest Request.TTL
	MaxSpare = 1 << 16          // tokens of Request.Spare
	MaxLine  = 100              // waiters in State.Line
)

// ownerBytes is the number of random bytes in an owner.
const ownerBytes = 20

// NewOwner returns a fresh owner value: 20 random bytes in base64url, as the
// Redlock specification asks for. Every attempt to acquire needs a new one. If
// two attempts share an owner, late clean-up of the first can end the lease of
// the second and so break mutual exclusion (see also Request.Attempt).
func NewOwner() string {
	var b [ownerBytes]byte
	rand.Read(b[:]) // never fails (crypto/rand, Go 1.24)
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// IsNewOwner reports whether owner has the form of a value that NewOwner or
// NewOwnerAt returns.
func IsNewOwner(owner string) bool {
	random, _, _ := strings.Cut(owner, string(rankMark))
	b, err := base64.RawURLEncoding.DecodeString(random)
	return err == nil && len(b) == ownerBytes
}

// Check returns nil if r is valid, and otherwise an error that matches
// ErrInvalid. maxTTL is the store's longest TTL; zero means no limit. Stores
// call Check before they send anything.
func (r Request) Check(maxTTL time.Duration) error {
	if err := CheckName(r.Name); err != nil {
		return err
	}
	if err := CheckOwner(r.Owner); err != nil {
		return err
	}
	if r.Attempt != "" {
		if err := CheckOwner(r.Attempt); err != nil {
			return err
		}
	}
	switch {
	case len(r.Meta) > MaxMeta:
		return fmt.Errorf("%w: the description of the holder has %d bytes, the maximum is %d: shorten the purpose", ErrInvalid, len(r.Meta), MaxMeta)
	case r.Spare < 0 || r.Spare > MaxSpare:
		return fmt.Errorf("%w: %d spare tokens: the number must be from 0 to %d", ErrInvalid, r.Spare, MaxSpare)
	case r.TTL < MinTTL:
		return fmt.Errorf("%w: TTL %v is too short: the minimum is %v", ErrInvalid, r.TTL, MinTTL)
	case maxTTL > 0 && r.TTL > maxTTL:
		return fmt.Errorf("%w: TTL %v is longer than the store's maximum of %v: ask for less, or raise the maximum for every client of this store", ErrInvalid, r.TTL, maxTTL)
	}
	return nil
}

// CheckName returns nil if name can name a lock, and otherwise an error that
// matches ErrInvalid. The client, the command and all stores use it, so that a
// program can change its store without renaming locks.
//
// Names of keys that Leasehold itself uses in Redis are reserved in every store.
// They begin with "leasehold:", or have the form {x}:word, where x is any text
// and word is token, line, waits or fence, or begins with gone: or place:.
func CheckName(name string) error {
	if name == "" {
		return fmt.Errorf("%w: the lock's name is empty: give it one", ErrInvalid)
	}
	if len(name) > MaxName {
		return fmt.Errorf("%w: the lock's name has %d bytes, the maximum is %d: shorten or hash it", ErrInvalid, len(name), MaxName)
	}
	if reserved(name) {
		return fmt.Errorf("%w: the name %q is reserved for Leasehold's own keys: choose another name", ErrInvalid, excerpt.AtMost(name, mostQuoted))
	}
	return nil
}

// CheckOwner returns nil if owner is 1 to MaxOwner printable ASCII characters
// without space, and otherwise an error that matches ErrInvalid.
func CheckOwner(owner string) error {
	if owner == "" || len(owner) > MaxOwner {
		return fmt.Errorf("%w: the owner has %d bytes: it must have 1 to %d", ErrInvalid, len(owner), MaxOwner)
	}
	for i := range len(owner) {
		if owner[i] <= ' ' || owner[i] > '~' {
			return fmt.Errorf("%w: the owner %q has a space or a character that is not printable ASCII", ErrInvalid, owner)
		}
	}
	return nil
}
