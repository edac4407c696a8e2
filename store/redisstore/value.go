package redisstore

import (
	"crypto/sha256"
	"fmt"
	"hash/maphash"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold/store"
)

// The value of a lock's key is the owner, a space, and the holder's description
// as compact JSON. It is compared whole. Most other clients write an owner alone. Ours
// stands alone only if it can be told from theirs.

func appendValue(b []byte, r store.Request) []byte {
	switch {
	case r.Meta != "":
		return appendWord(b, r.Owner, " ", r.Meta)
	case store.IsNewOwner(r.Owner):
		return appendWord(b, r.Owner)
	}
	return appendWord(b, r.Owner, " ", noMeta)
}

// decodeValue reads the value of a lock's key, which may be anything: other clients
// write what they like. A value is ours if it begins with an owner as store.NewOwner
// makes them, or goes on with a description.
func decodeValue(value string) store.Holder {
	owner, meta, spaced := strings.Cut(value, " ")
	if store.CheckOwner(owner) == nil {
		h := store.Holder{}
		if spaced {
			h = decodeMeta(meta)
		}
		if h != (store.Holder{}) || meta == noMeta || store.IsNewOwner(owner) {
			h.Owner = owner
			return h
		}
	}
	return store.Holder{Owner: foreignOwner(value), Foreign: true}
}

// noMeta is the description of a holder that says nothing of itself.
var noMeta = store.Holder{}.Encode()

// mostForeign is how much of a stranger's value is kept to tell holders apart.
const mostForeign = 100

// foreignOwner stands for the value that another client wrote. Different values stay
// different: one holder on two nodes has a part of each that matters.
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

// decodeMeta reads a description; what is none gives a zero Holder.
func decodeMeta(meta string) store.Holder {
	slot := &lastDescribed[maphash.String(seed, meta)%uint64(len(lastDescribed))]
	d := slot.Load()
	if d == nil || d.meta != meta {
		d = &described{strings.Clone(meta), store.DecodeHolder("", meta)}
		slot.Store(d)
	}
	return d.as
}

// described is what a description was decoded as. The last few are kept: five
// nodes say the same, and who waits hears of the same holders all the time.
type described struct {
	meta string
	as   store.Holder
}

var (
	lastDescribed [16]atomic.Pointer[described]
	seed          = maphash.MakeSeed()
)
