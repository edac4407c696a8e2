package redis

import (
	"hash/maphash"
	"strings"
	"sync/atomic"

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
		slot := &lastDescribed[maphash.String(seed, meta)%uint64(len(lastDescribed))]
		d := slot.Load()
		if d == nil || d.meta != meta {
			d = &described{strings.Clone(meta), store.DecodeHolder("", meta)}
			slot.Store(d)
		}
		h := d.as
		h.Owner = owner
		return h
	}
	return store.Holder{Owner: value}
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
