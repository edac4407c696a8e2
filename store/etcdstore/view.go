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
	of     placeID
	key    string
	number int64
}

func slotOf(prefix string, kv *mvccpb.KeyValue) (slot, bool) {
	s := slot{key: string(kv.Key)}
	var err error
	if s.number, err = strconv.ParseInt(strings.TrimPrefix(s.key, prefix), 10, 64); err != nil || json.Unmarshal(kv.Value, &s.of) != nil {
		return s, false
	}
	if s.of.Create == 0 { // the place was made in the same transaction
		s.of.Create = kv.CreateRevision
	}
	return s, true
}

// view is a lock at one revision. A place that holds the lock in it goes on to do so:
// later places come behind it, and those before it only leave. So when a place leaves, the view at
// which it entered still shows the next owner.
type view struct {
	prefix   string
	places   []entry // in order
	taken    []int64 // the slots that have a key
	revision int64
	term     uint64 // of the leader
	// more is how many places were not read, and gap how many of them are between the last two that were.
	// before is the key of the one before the last one then.
	more, gap int
	before    string
}

// mostRead is how many places of a mutex are read to find those that come next.
const mostRead = 16

// reading is what is read of a lock: all of it, or some of the oldest places.
type reading struct {
	name string
	most int64 // 0: all
	// key is that of a place that is read in any case, if not empty, and then no slots are read; at is
	// when it was created, 0: that is not known.
	key string
	at  int64
}

// readingFor is what has to be read for a place. Only one place holds a mutex, so the first few will do.
func readingFor(of store.Lease, key string, at int64) reading {
	if of.Kind.IsMutex() {
		return reading{name: of.Name, most: mostRead, key: key, at: at}
	}
	return reading{name: of.Name}
}

func (l layout) reads(of reading) []operation {
	oldest := byAge(l.lock(of.name), of.most)
	switch {
	case of.key == "":
		return []operation{oldest, getAll(l.slots(of.name))}
	case of.at == 0:
		return []operation{oldest, get(of.key)}
	}
	return []operation{oldest, before(l.lock(of.name), of.at)}
}

// view returns the lock that the last two responses have read.
func (s *link) view(of reading, r *clientv3.TxnResponse) *view {
	last := r.Responses[len(r.Responses)-2:]
	oldest, other := last[0].GetResponseRange(), last[1].GetResponseRange().Kvs
	var slots []slot
	for _, kv := range other {
		if is, ok := slotOf(s.layout.slots(of.name), kv); ok && of.key == "" {
			slots = append(slots, is)
		}
	}
	v := newView(s.layout.lock(of.name), entriesOf(oldest.Kvs), slots, r.Header.Revision)
	v.term, v.more = r.Header.RaftTerm, int(oldest.Count)-len(v.places)
	if of.key == "" {
		return v
	}
	near := entriesOf(other)
	if len(near) > 0 && near[0].key == of.key && (of.at == 0 || near[0].create == of.at) && v.index(of.key, 0) < 0 {
		v.places, v.more, v.gap = append(v.places, near[0]), v.more-1, v.more-1
		if len(near) > 1 {
			v.before = near[1].key
		}
	}
	return v
}

func newView(prefix string, places []entry, slots []slot, revision int64) *view {
	v := &view{prefix: prefix, places: places, revision: revision}
	of := make(map[placeID]*slot, len(slots))
	for i, s := range slots {
		of[s.of] = &slots[i]
		v.taken = append(v.taken, s.number)
	}
	for i, e := range places {
		s := of[placeID{e.key[len(prefix):], e.create}]
		switch {
		case s == nil && e.Kept != nil: // it was the holder of a mutex
			s = &slot{number: *e.Kept}
			v.taken = append(v.taken, s.number)
		case i == 0 && e.hasEntered():
			s = &slot{}
		}
		places[i].slot = s
	}
	return v
}

// read reads a lock, in a transaction with other operations before that. An error
// with a view means that the data of the cluster was replaced.
func (s *link) read(ctx context.Context, of reading, before ...operation) (*view, error) {
	r, _, err := s.commit(ctx, txn{then: append(before, s.layout.reads(of)...)})
	if r == nil {
		return nil, err
	}
	return s.view(of, r), err
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

// several reports whether several can hold the lock. v may be nil.
func (v *view) several() bool { return v != nil && len(v.places) > 0 && v.places[0].several() }

// holders is how many places hold the lock, whether they have noticed or not.
func (v *view) holders() int { return rule.Holders(ranked(v.places)) }

// position returns which waiter the place at index me is, and at most which if not all places were
// read.
func (v *view) position(me int) int {
	position := me - v.holders() + 1
	if me == len(v.places)-1 {
		position += v.gap
	}
	return position
}

// freeSlot returns a slot for the place at index me, whose turn it is. It leaves
// smaller slots to the places before it that have not noticed their turn yet.
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
func (v *view) entered(i int, s slot) *view {
	next := *v
	next.places = slices.Clone(v.places)
	next.places[i].slot = &s
	next.taken = append(slices.Clip(v.taken), s.number)
	return &next
}

// otherKind returns the error for a lock that first has as another kind.
func otherKind(of store.Lease, first entry) error {
	return &store.KindError{Name: of.Name, Asked: of.Kind, InUse: store.Kind(first.spec()), Holder: first.holder()}
}

// refusal returns the error for the place at index me, which does not hold the lock:
// a *store.KindError if it is for another kind than the one in use.
func (v *view) refusal(of store.Lease, me, position int) error {
	is := rule.Owns(ranked(v.places), me)
	first := v.places[0]
	if is.Verdict == rule.Mismatch && first.spec() != v.places[me].spec() {
		return otherKind(of, first)
	}
	blocker := first
	if is.Blocker.Waiting {
		blocker = v.places[v.holders()]
	}
	refused := &store.BusyError{Name: of.Name, Holder: blocker.holder(), ExpiresIn: blocker.lasts(), Position: position}
	refused.Holder.Waiting = is.Blocker.Waiting
	return refused
}
