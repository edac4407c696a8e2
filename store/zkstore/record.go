package zkstore

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// record is the data of a place.
type record struct {
	Owner string `json:"owner"`
	// Attempt is that of the lease. It is empty if several attempts have joined.
	Attempt string `json:"attempt,omitempty"`
	Meta    string `json:"meta,omitempty"`
	// MetaBytes is the meta instead if it is not UTF-8.
	MetaBytes []byte        `json:"meta64,omitempty"`
	TTL       time.Duration `json:"ttl"`
	// Token is set if the node was made anew, in another session: it is the token of the first
	// node. Readers that have agreed have the token that they share here.
	Token fence.Token `json:"token,omitempty"`
	// Agreed is set if a holder has agreed with those before it; see tree.agree.
	Agreed bool `json:"agreed,omitempty"`
	// Broken is set once an operator has broken the lease.
	Broken bool `json:"broken,omitempty"`
	// Seats are the slots of the holder of a semaphore and of those before it.
	Seats []seat `json:"seats,omitempty"`
}

// seat is the slot of the place with a number.
type seat struct {
	Seq  int32 `json:"seq"`
	Slot int64 `json:"slot"`
}

func recordOf(l store.Lease) record {
	r := record{Owner: l.Owner, Attempt: l.Attempt, TTL: l.TTL}
	if utf8.ValidString(l.Meta) {
		r.Meta = l.Meta
	} else {
		r.MetaBytes = []byte(l.Meta)
	}
	return r
}

func (r record) encode() []byte { return encodeJSON(r) }

// encodeJSON encodes the data of a node.
func encodeJSON(v any) []byte {
	b, _ := json.Marshal(v) // never fails: v has only strings and numbers
	return b
}

// decodeJSON decodes the data of a node. Those of another kind of client say nothing.
func decodeJSON[T any](data []byte) (v T) {
	if json.Unmarshal(data, &v) != nil {
		return *new(T)
	}
	return v
}

// decodeRecord returns false if the data is that of another kind of client.
func decodeRecord(data []byte) (record, bool) {
	r := decodeJSON[record](data)
	if store.CheckOwner(r.Owner) != nil || r.TTL <= 0 {
		return record{}, false
	}
	return r, true
}

func (r record) meta() string {
	if r.MetaBytes != nil {
		return string(r.MetaBytes)
	}
	return r.Meta
}

// isOfAnother reports whether a release must leave the lease alone: another attempt of
// its owner made it or, to undo an attempt, also if another one has joined it.
func (r record) isOfAnother(q store.ReleaseRequest) bool {
	if q.Attempt == "" || r.Attempt == q.Attempt {
		return false
	}
	return r.Attempt != "" || q.Undo
}

// Tokens are even, and follow the zxid of the transaction that made the place. It consists
// of an epoch of 32 bits and a counter of 32 bits.
const maxEpoch = 1 << 20 // then tokens are below 2^53

// downgraded returns the token of readers of which the first was the writer with this
// token. It is larger than the writer's, and smaller than those of all waiters.
func downgraded(writer fence.Token) fence.Token { return writer | 1 }

// tokenOf returns the token of a place, by its data and by the zxid that made it.
func tokenOf(r record, czxid int64) fence.Token {
	if r.Token != 0 {
		return r.Token
	}
	return 2 * fence.Token(czxid)
}

// slot returns the slot of the place c.
func (r record) slot(c numbered) int64 {
	if c.spec == rule.ReadWrite {
		return int64(uint32(c.seq)) // stays if a writer becomes a reader
	}
	for _, s := range r.Seats {
		if s.Seq == c.seq {
			return s.Slot
		}
	}
	return 0
}

// first returns the record of the place c, made by the transaction czxid, as that of the
// first holder.
func (r record) first(c numbered, czxid int64) record {
	if c.spec.Shared {
		r.Token = tokenOf(r, czxid)
	}
	if hasSeats(c.spec) {
		r.Seats = []seat{{c.seq, 0}}
	}
	r.Agreed = true
	return r
}

// behind returns the record of the holder q[i], where before is that of the holder before
// it, which has agreed.
func (r record) behind(before record, q queue, i int) record {
	if q[i].spec.Shared {
		r.Token = before.Token
	}
	if hasSeats(q[i].spec) {
		r.Seats = nil
		for _, s := range before.Seats {
			if slices.ContainsFunc(q[:i], func(c numbered) bool { return c.seq == s.Seq }) {
				r.Seats = append(r.Seats, s)
			}
		}
		r.Seats = append(r.Seats, seat{q[i].seq, freeSlot(r.Seats)})
	}
	r.Agreed = true
	return r
}

// freeSlot returns the smallest slot that is not taken.
func freeSlot(taken []seat) (free int64) {
	slices.SortFunc(taken, func(a, b seat) int { return cmp.Compare(a.Slot, b.Slot) })
	for _, s := range taken {
		if s.Slot == free {
			free++
		}
	}
	return free
}
