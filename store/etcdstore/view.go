package etcdstore

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// slot is the key that says which holder of a lock has a slot. It is attached to the lease
// of the holder's place, and made in the transaction in which the holder enters.
type slot struct {
	successor // the place; Process is empty
	key       string
	number    int64
}

func slotOf(prefix string, kv *mvccpb.KeyValue) (slot, bool) {
	s := slot{key: string(kv.Key)}
	var err error
	if s.number, err = strconv.ParseInt(strings.TrimPrefix(s.key, prefix), 10, 64); err != nil || json.Unmarshal(kv.Value, &s.successor) != nil {
		return s, false
	}
	if s.Create == 0 { // the place was made in the same transaction
		s.Create = kv.CreateRevision
	}
	return s, true
}

// view is all of a lock at one revision. A place that holds the lock in it goes on to do so:
// later places come behind it, and those before it only leave.
type view struct {
	prefix   string
	places   []entry // in order
	taken    []int64 // the slots that have a key, in order
	revision int64
	term     uint64 // of the leader
}

// readAll reads a lock. viewOf takes the two responses.
func (l layout) readAll(name string) []operation {
	return []operation{byAge(l.lock(name), 0), getAll(l.slots(name))}
}

func (l layout) viewOf(name string, places, slots *clientv3.GetResponse, revision int64) *view {
	var all []slot
	for _, kv := range slots.Kvs {
		if s, ok := slotOf(l.slots(name), kv); ok {
			all = append(all, s)
		}
	}
	return newView(l.lock(name), entriesOf(places.Kvs), all, revision)
}

func newView(prefix string, places []entry, slots []slot, revision int64) *view {
	v := &view{prefix: prefix, places: places, revision: revision}
	of := make(map[successor]*slot, len(slots))
	for i, s := range slots {
		of[s.successor] = &slots[i]
		v.taken = append(v.taken, s.number)
	}
	slices.Sort(v.taken)
	for i, e := range places {
		s := of[successor{Suffix: e.key[len(prefix):], Create: e.create}]
		if s == nil && e.Kept != nil { // it was the holder of a mutex
			s = &slot{number: *e.Kept}
			v.taken = append(v.taken, s.number)
		}
		places[i].slot = s
	}
	return v
}

// view returns the lock that the last two responses have read.
func (s *link) view(name string, r *clientv3.TxnResponse) *view {
	n := len(r.Responses)
	get := func(i int) *clientv3.GetResponse {
		return (*clientv3.GetResponse)(r.Responses[i].GetResponseRange())
	}
	v := s.layout.viewOf(name, get(n-2), get(n-1), r.Header.Revision)
	v.term = r.Header.RaftTerm
	return v
}

// read returns the lock called name, in a transaction with other operations before that. An error
// with a view means that the data of the cluster was replaced.
func (s *link) read(ctx context.Context, name string, before ...operation) (*view, error) {
	r, _, err := s.commit(ctx, txn{then: append(before, s.layout.readAll(name)...)})
	if r == nil {
		return nil, err
	}
	return s.view(name, r), err
}

// index returns where the place with that key is, and -1 if it is not there. create is 0
// if it is not known.
func (v *view) index(key string, create int64) int {
	return slices.IndexFunc(v.places, func(e entry) bool {
		return e.key == key && (create == 0 || e.create == create)
	})
}

// held returns the place with which an owner has entered.
func (v *view) held(owner string) (entry, bool) {
	for _, e := range v.places {
		if e.Owner == owner && !e.native && e.slot != nil {
			return e, true
		}
	}
	return entry{}, false
}

// holders is how many places hold the lock, whether they have noticed or not.
func (v *view) holders() int { return rule.Holders(ranked(v.places)) }

// freeSlot returns a slot for the place at index me, whose turn it is. It leaves the
// smaller ones to those before it that have not noticed yet.
func (v *view) freeSlot(me int) int64 {
	skip := 0
	for _, e := range v.places[:me] {
		if e.slot == nil {
			skip++
		}
	}
	for n := int64(0); ; n++ {
		if slices.Contains(v.taken, n) {
			continue
		}
		if skip == 0 {
			return n
		}
		skip--
	}
}

// companion returns a place that has entered and whose token the place at index me shares
// when it enters.
func (v *view) companion(me int) (entry, bool) {
	if !v.places[me].sharesToken() {
		return entry{}, false
	}
	for _, e := range v.places {
		if e.slot != nil && e.sharesToken() {
			return e, true
		}
	}
	return entry{}, false
}

// with returns v with a further place behind all others.
func (v *view) with(e entry) *view {
	next := *v
	next.places = append(slices.Clip(v.places), e)
	return &next
}

// without returns v without the place at index i and its slot.
func (v *view) without(i int) *view {
	next := *v
	next.places = slices.Delete(slices.Clone(v.places), i, i+1)
	if s := v.places[i].slot; s != nil {
		next.taken = slices.DeleteFunc(slices.Clone(v.taken), func(n int64) bool { return n == s.number })
	}
	return &next
}

// entered returns v after the place at index i has entered.
func (v *view) entered(i int, number int64) *view {
	next := *v
	next.places = slices.Clone(v.places)
	next.places[i].slot = &slot{number: number}
	next.taken = append(slices.Clip(v.taken), number)
	return &next
}

// take makes the slot of a place.
func (l layout) take(name string, number int64, of successor, id clientv3.LeaseID) operation {
	of.Process = ""
	return put(l.slot(name, number), of.encode(), id)
}

// otherKind returns the error for a lock that first has as another kind.
func otherKind(of store.Lease, first entry) error {
	return &store.KindError{Name: of.Name, Asked: of.Kind, InUse: store.Kind(first.spec()), Holder: first.holder()}
}

// refusal returns the error for the place at index me, which does not hold the lock:
// a *store.KindError if it is for another kind than the one in use.
func (s *link) refusal(ctx context.Context, of store.Lease, v *view, me, position int) error {
	is := rule.Owns(ranked(v.places), me)
	first := v.places[0]
	if is.Verdict == rule.Mismatch && first.spec() != v.places[me].spec() {
		return otherKind(of, first)
	}
	blocker := first
	if is.Blocker.Waiting {
		blocker = v.places[v.holders()]
	}
	busy := s.busy(ctx, of.Name, blocker, position)
	busy.Holder.Waiting = is.Blocker.Waiting
	return busy
}
