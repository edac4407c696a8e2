package redisdoor

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// A client may write the same value each time, such as its host's name, and then counts on SET
// NX to refuse the second attempt. Stores grant an owner again what it has. So each attempt has
// an owner of its own: the value behind a random word. Whatever server of the store is asked, it
// finds the value in the owner.
const (
	plain  = "redis:"   // redis:RANDOM:VALUE, if all bytes of the value may be in an owner
	coded  = "redis64:" // redis64:RANDOM:VALUE, with the value in base64url
	random = 9          // bytes, which are 12 characters
)

// newOwner returns a new owner for a value.
func newOwner(value string) (string, error) {
	var nonce [random]byte
	rand.Read(nonce[:]) // never fails
	prefix, n := plain, len(value)
	if strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' || r == '.' }) { // a dot can begin a rank: see store.Rank
		prefix, n = coded, base64.RawURLEncoding.EncodedLen(n)
	}
	if len(prefix)+base64.RawURLEncoding.EncodedLen(random)+1+n > store.MaxOwner {
		return "", fmt.Errorf("the value has %d bytes, which is too long: this server keeps it as the owner of a lease, which has room for 237 printable characters, or for 176 bytes of any kind", len(value))
	}
	var b [store.MaxOwner]byte
	owner := append(base64.RawURLEncoding.AppendEncode(append(b[:0], prefix...), nonce[:]), ':')
	if prefix == plain {
		return string(append(owner, value...)), nil
	}
	return string(base64.RawURLEncoding.AppendEncode(owner, []byte(value))), nil
}

// valueOf returns the value that an owner is for, if a client of this door wrote it.
func valueOf(owner string) (value string, ok bool) {
	rest, isPlain := strings.CutPrefix(owner, plain)
	if !isPlain {
		if rest, ok = strings.CutPrefix(owner, coded); !ok {
			return "", false
		}
	}
	nonce, value, ok := strings.Cut(rest, ":")
	if !ok || len(nonce) != base64.RawURLEncoding.EncodedLen(random) {
		return "", false
	}
	if isPlain {
		return value, true
	}
	b, err := base64.RawURLEncoding.DecodeString(value)
	return string(b), err == nil
}

// shownTo returns what GET answers about a lock: the value that the holder wrote, or a text that
// is no client's value if the lock is not held through this door, or no longer its holder's.
func shownTo(h store.Holder) string {
	if value, ok := valueOf(h.Owner); ok && !h.Broken {
		return value
	}
	return "leasehold:" + h.Owner
}
