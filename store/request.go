package store

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"time"
)

// Limits of a Request, the same for every store.
const (
	MaxName  = 1024 // bytes
	MaxOwner = 256  // bytes
	MaxMeta  = 4096 // bytes
	MinTTL   = time.Millisecond
	MaxSpare = 1 << 16 // tokens
	MaxLine  = 100     // places that State.Line shows
)

// ownerBytes is how many random bytes an owner has.
const ownerBytes = 20

// NewOwner returns a fresh owner value: 20 random bytes, base64url, which is
// what the Redlock specification asks for. Every attempt to acquire needs a
// new one; a value used for two attempts breaks mutual exclusion when the
// first attempt's clean-up arrives late.
func NewOwner() string {
	var b [ownerBytes]byte
	rand.Read(b[:]) // never fails (crypto/rand, Go 1.24)
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// IsNewOwner reports whether owner looks like one that NewOwner or NewOwnerAt made.
func IsNewOwner(owner string) bool {
	random, _, _ := strings.Cut(owner, string(rankMark))
	b, err := base64.RawURLEncoding.DecodeString(random)
	return err == nil && len(b) == ownerBytes
}

// Check says what is wrong with r, as an error matching ErrInvalid, or nil.
// maxTTL is the store's longest TTL, zero for none. Stores call it before they
// send anything.
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
		return fmt.Errorf("%w: the description of the holder has %d bytes, the most is %d: shorten the purpose", ErrInvalid, len(r.Meta), MaxMeta)
	case r.Spare < 0 || r.Spare > MaxSpare:
		return fmt.Errorf("%w: %d spare tokens: it can be 0 to %d", ErrInvalid, r.Spare, MaxSpare)
	case r.TTL < MinTTL:
		return fmt.Errorf("%w: TTL %v is too short: the least is %v", ErrInvalid, r.TTL, MinTTL)
	case maxTTL > 0 && r.TTL > maxTTL:
		return fmt.Errorf("%w: TTL %v is longer than the store's maximum of %v: ask for less, or raise the maximum for every client of this store", ErrInvalid, r.TTL, maxTTL)
	}
	return nil
}

// CheckName returns an error matching ErrInvalid unless name can name a lock.
// It is the one place that decides, for the client, the command and all stores:
// a name that one of them refuses is refused by all, so that a program can
// change its store without renaming locks.
//
// Reserved are names that Redis would keep at a key of the machinery: those that
// begin with "leasehold:", and those of the form {x}:token, where x is any text
// and token may also be line, waits or fence, or gone: or place: and any text.
func CheckName(name string) error {
	if name == "" {
		return fmt.Errorf("%w: the lock's name is empty: give it one", ErrInvalid)
	}
	if len(name) > MaxName {
		return fmt.Errorf("%w: the lock's name has %d bytes, the most is %d: shorten or hash it", ErrInvalid, len(name), MaxName)
	}
	if reserved(name) {
		return fmt.Errorf("%w: the name %q is reserved for keys that belong to locks: choose another name", ErrInvalid, printable(name, mostQuoted))
	}
	return nil
}

// CheckOwner says whether owner can name an owner.
func CheckOwner(owner string) error {
	if owner == "" || len(owner) > MaxOwner {
		return fmt.Errorf("%w: the owner has %d bytes: it needs 1 to %d", ErrInvalid, len(owner), MaxOwner)
	}
	for i := range len(owner) {
		if owner[i] <= ' ' || owner[i] > '~' {
			return fmt.Errorf("%w: the owner %q has a space or a character that is not printable ASCII", ErrInvalid, owner)
		}
	}
	return nil
}
