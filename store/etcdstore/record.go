package etcdstore

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// record is the value of a key of ours. The value of a native client can be anything, and is mostly empty.
type record struct {
	Owner string `json:"owner"`
	// Made is the attempt that made the grant, as in rule.Hold.
	Made string `json:"made,omitempty"`
	Meta string `json:"meta,omitempty"`
	// Raw is Meta if that is not UTF-8.
	Raw []byte `json:"raw,omitempty"`
	// Seconds is how long the lease of the key lasts.
	Seconds int64 `json:"seconds"`
	// Term is that of the lease of the key, as in lease.
	Term uint64 `json:"term,omitempty"`
	// Token is that of the grant, once the value was replaced. Until then the key's
	// revision tells.
	Token fence.Token `json:"token,omitempty"`
	// Moves means that the key may be attached to another lease at any time, as in attach.
	Moves bool `json:"moves,omitempty"`
	// Process has the inbox to which a grant is written. It is empty if the owner does
	// not wait.
	Process string `json:"process,omitempty"`
	// Limit and Shared are those of the lock's kind, and Weight that of the lease. They
	// are empty for a mutex.
	Limit  int64 `json:"limit,omitempty"`
	Shared bool  `json:"shared,omitempty"`
	Weight int64 `json:"weight,omitempty"`
	// Kept is the slot of a lease that was granted before Resize.
	Kept *int64 `json:"kept,omitempty"`
	// In means that a mutex was free when the place was made.
	In bool `json:"in,omitempty"`
	// Broken means that the lease cannot be renewed any more.
	Broken bool `json:"broken,omitempty"`
}

// recordOf returns the record of a lease that is to be attached to l.
func recordOf(of store.Lease, l *lease, process string) record {
	r := record{Owner: of.Owner, Made: of.Attempt, Seconds: int64(l.lasts / time.Second), Term: l.term, Process: process}
	if !of.Kind.IsMutex() {
		r.Limit, r.Shared, r.Weight = of.Kind.Limit, of.Kind.Shared, max(of.Weight, 1)
	}
	if utf8.ValidString(of.Meta) {
		r.Meta = of.Meta
	} else {
		r.Raw = []byte(of.Meta)
	}
	return r
}

// entry is a key of a lock, as it was read.
type entry struct {
	record
	key         string
	create, mod int64
	lease       clientv3.LeaseID
	native      bool // another kind of client made it
	// slot is the slot of a place that has entered. It is nil while the place waits, or has not
	// noticed its turn yet. The slot of a mutex has no key.
	slot *slot
}

// slotKey is the key of the slot, or empty.
func (e entry) slotKey() string {
	if e.slot == nil {
		return ""
	}
	return e.slot.key
}

// is reports whether e is the key of the place.
func (e entry) is(p *place) bool { return e.key == p.key && e.create == p.create }

// spec is the kind of lock that the place is for.
func (e entry) spec() rule.Spec { return rule.Spec{Limit: max(e.Limit, 1), Shared: e.Shared} }

// several reports whether the place is for a lock that several can hold.
func (e entry) several() bool { return e.Limit != 0 }

// hasEntered reports whether the first place of a mutex has entered: it was made when nobody had
// the lock, or it was changed since then, as the places of waiters are only when they enter.
func (e entry) hasEntered() bool { return !e.native && !e.several() && (e.In || e.mod != e.create) }

// placeID is a place among those of a lock.
type placeID struct {
	Suffix string `json:"k"`
	Create int64  `json:"c"`
}

// message is written to the inbox of a process: one of its places has to look at the lock, or the
// lease of that place was broken. It is a hint, since a user with rights to other locks can write it
// as well.
type message struct {
	Create  int64 `json:"c"`           // of the place
	Resized bool  `json:"r,omitempty"` // Resize removed the place
	// Broken is the owner of the place, whose lease was broken.
	Broken string `json:"x,omitempty"`
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("leasehold: encoding strings and numbers failed: " + err.Error())
	}
	return string(b)
}

func entryOf(kv *mvccpb.KeyValue) entry {
	e := entry{key: string(kv.Key), create: kv.CreateRevision, mod: kv.ModRevision, lease: clientv3.LeaseID(kv.Lease)}
	if json.Unmarshal(kv.Value, &e.record) != nil || store.CheckOwner(e.Owner) != nil {
		e.record, e.native = record{Owner: store.Excerpt(e.key)}, true
	}
	return e
}

func entriesOf(kvs []*mvccpb.KeyValue) []entry {
	all := make([]entry, len(kvs))
	for i, kv := range kvs {
		all[i] = entryOf(kv)
	}
	return all
}

// sharesToken is store.Lease.SharesToken.
func (r record) sharesToken() bool { return r.Shared && r.Weight < r.Limit }

func (e entry) meta() string {
	if e.Raw != nil {
		return string(e.Raw)
	}
	return e.Meta
}

func (e entry) holder() store.Holder {
	if e.native {
		return store.Holder{Owner: e.Owner, Foreign: true}
	}
	h := store.DecodeHolder(e.Owner, e.meta())
	h.Broken = e.Broken
	return h
}

// lasts is the longest that the entry can last unless it is renewed. It is negative for
// one without a lease, and zero if it is not known, as of native clients.
func (e entry) lasts() time.Duration {
	if e.lease == clientv3.NoLease {
		return -1
	}
	return time.Duration(max(0, e.Seconds)) * time.Second
}

func (e entry) token(floor fence.Token) fence.Token {
	if e.Token != 0 {
		return e.Token
	}
	return tokenAt(floor, e.mod)
}

// ranked is the queue as the rule sees it.
func ranked(entries []entry) []rule.Ranked {
	places := make([]rule.Ranked, len(entries))
	for i, e := range entries {
		places[i] = rule.Ranked{Owner: e.Owner, Spec: e.spec(), Weight: e.Weight, Kept: e.Kept != nil}
	}
	return places
}
