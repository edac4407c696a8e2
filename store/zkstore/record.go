package zkstore

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// record is the data of a place.
type record struct {
	Owner string `json:"owner"`
	// Attempt is that of the lease. It is empty if several attempts have joined.
	Attempt string `json:"attempt,omitempty"`
	Meta    string `json:"meta,omitempty"`
	// MetaBytes is the meta instead if it is not UTF-8.
	MetaBytes []byte `json:"meta64,omitempty"`
	// TTL is in microseconds.
	TTL int64 `json:"ttl"`
	// Token is set if the node was made anew, in another session: that of the first. That of
	// readers that have agreed is the one that they share.
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
	r := record{Owner: l.Owner, Attempt: l.Attempt, TTL: micros(l.TTL)}
	if utf8.ValidString(l.Meta) {
		r.Meta = l.Meta
	} else {
		r.MetaBytes = []byte(l.Meta)
	}
	return r
}

// micros returns d in microseconds, rounded up.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

func (r record) encode() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic("zkstore: encoding strings and numbers failed: " + err.Error())
	}
	return b
}

// decodeRecord returns false if the data is that of another kind of client.
func decodeRecord(data []byte) (record, bool) {
	var r record
	if json.Unmarshal(data, &r) != nil || store.CheckOwner(r.Owner) != nil || r.TTL <= 0 {
		return record{}, false
	}
	return r, true
}

func (r record) ttl() time.Duration {
	return time.Duration(min(r.TTL, int64(1<<62/time.Microsecond))) * time.Microsecond
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
