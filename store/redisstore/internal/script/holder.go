package script

import (
	"crypto/sha256"
	"fmt"
	"hash/maphash"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// The value of a lock's key is the owner, a space, and the description of the holder as
// compact JSON. Values are compared as a whole. Most other clients write an owner without
// a description. We do so only if the owner has the form of ours.

func appendValue(b []byte, r store.Lease) []byte {
	switch {
	case r.Meta != "":
		return resp.AppendWord(b, r.Owner, " ", r.Meta)
	case store.IsNewOwner(r.Owner):
		return resp.AppendWord(b, r.Owner)
	}
	return resp.AppendWord(b, r.Owner, " ", NoMeta)
}

// DecodeValue reads the value of a lock's key, which may be anything, since other clients
// use the same keys. A value is ours if it begins with an owner as store.NewOwner makes
// them, or has a description.
func DecodeValue(value string) store.Holder {
	owner, meta, spaced := strings.Cut(value, " ")
	if store.CheckOwner(owner) == nil {
		h := store.Holder{}
		if spaced {
			h = decodeMeta(meta)
		}
		if h != (store.Holder{}) || meta == NoMeta || store.IsNewOwner(owner) {
			h.Owner = owner
			return h
		}
	}
	return store.Holder{Owner: foreignOwner(value), Foreign: true}
}

// NoMeta is the description of a holder that describes itself as nothing.
var NoMeta = store.Holder{}.Encode()

// mostForeign is how many bytes of another client's value are kept to distinguish
// holders.
const mostForeign = 100

// foreignOwner returns an owner that stands for another client's value. Different values
// give different owners: the majority of a lock is counted by owner.
func foreignOwner(value string) string {
	switch {
	case value == "":
		return "(empty)" // an empty owner would mean nobody
	case len(value) <= mostForeign:
		return value
	}
	sum := sha256.Sum256([]byte(value))
	begin := strings.ToValidUTF8(value[:mostForeign], "?")
	if utf8.ValidString(value) { // the cut may be within a character
		begin = strings.TrimSuffix(begin, "?")
	}
	return fmt.Sprintf("%s... (SHA-256 %x...)", begin, sum[:8])
}

// decodeMeta reads a description. An invalid one gives a zero Holder.
func decodeMeta(meta string) store.Holder {
	slot := &lastDescribed[maphash.String(seed, meta)%uint64(len(lastDescribed))]
	d := slot.Load()
	if d == nil || d.meta != meta {
		d = &described{strings.Clone(meta), store.DecodeHolder("", meta)}
		slot.Store(d)
	}
	return d.as
}

// described caches the last decoded descriptions: five nodes report the same one, and a
// waiter sees those of the same holders again and again.
type described struct {
	meta string
	as   store.Holder
}

var (
	lastDescribed [16]atomic.Pointer[described]
	seed          = maphash.MakeSeed()
)
