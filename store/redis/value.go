package redis

import (
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// The value of a lock's key is the owner, a space, and the holder's description
// as compact JSON. It is compared whole. An owner without a description stands
// alone, which is how most other clients write theirs.

func appendValue(b []byte, r store.Request) []byte {
	if r.Meta == "" {
		return appendWord(b, r.Owner)
	}
	return appendWord(b, r.Owner, " ", r.Meta)
}

// decodeValue takes any bytes: the key may be a stranger's.
func decodeValue(value string) store.Holder {
	if owner, meta, ok := strings.Cut(value, " "); ok && store.CheckOwner(owner) == nil {
		return store.DecodeHolder(owner, meta)
	}
	return store.Holder{Owner: value}
}
