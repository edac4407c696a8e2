package etcdstore

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/store"
)

// expiring is how long Inspect waits for the keys of a lease that has ended. If many end at once,
// etcd takes seconds: it revokes about a thousand a second.
const expiring = 20 * time.Millisecond

// Inspect implements driver.Engine.
func (s *engine) Inspect(ctx context.Context, name string) (store.State, error) {
	for again := false; ; again = true {
		if again && !sleep(ctx, expiring) {
			return store.State{}, s.failed(ctx, "inspect", name, false, ctx.Err())
		}
		v, last, err := s.readWithNote(ctx, name)
		if v == nil {
			return store.State{}, s.refused(ctx, "inspect", name, false, err)
		}
		left, err := s.allLeft(ctx, v.places[:v.holders()])
		if err != nil {
			return store.State{}, s.failed(ctx, "inspect", name, false, err)
		}
		if slices.Contains(left, 0) {
			continue // a lease has ended, and its keys are about to go
		}
		st := s.state(name, v, left)
		st.Broken = last.decode()
		st.Queue, err = s.queue(ctx, v.places[len(left):])
		if err != nil {
			return store.State{}, s.failed(ctx, "inspect", name, false, err)
		}
		return st, nil
	}
}

// queue describes waiters, without those that have just gone.
func (s *link) queue(ctx context.Context, waiters []entry) (queue []store.Place, err error) {
	if len(waiters) == 0 {
		return nil, nil
	}
	queue = make([]store.Place, min(len(waiters), store.MaxQueue))
	errs := make([]error, len(queue))
	atOnce(waiters[:len(queue)], func(i int, e entry) {
		queue[i].Holder = e.holder()
		queue[i].ExpiresIn, errs[i] = s.atMost(ctx, e)
	})
	return slices.DeleteFunc(queue, func(p store.Place) bool { return p.ExpiresIn == 0 }), cmp.Or(errs...)
}

// readWithNote is read, without the waiters of a mutex that Inspect does not show, and with
// the note about the lease that was broken last, if there is one.
func (s *link) readWithNote(ctx context.Context, name string) (*view, *note, error) {
	some := reading{name: name, most: store.MaxQueue + 1}
	r, _, err := s.commit(ctx, txn{then: append([]operation{get(s.layout.note(name))}, s.layout.reads(some)...)})
	if r == nil {
		return nil, nil, err
	}
	v, last := s.view(some, r), noteOf(r.Responses[0].GetResponseRange().Kvs)
	if v.more > 0 && v.several() {
		v, err = s.read(ctx, reading{name: name})
	}
	return v, last, err
}

// allLeft is left for several places at once.
func (s *link) allLeft(ctx context.Context, places []entry) ([]time.Duration, error) {
	left := make([]time.Duration, len(places))
	errs := make([]error, len(places))
	atOnce(places, func(i int, e entry) { left[i], errs[i] = s.left(ctx, e) })
	return left, cmp.Or(errs...)
}

// state returns the state of a lock, without the queue. left says how long the leases of
// the holders can last.
func (s *core) state(name string, v *view, left []time.Duration) store.State {
	st := store.State{Name: name}
	for i, e := range v.places[:len(left)] {
		h := store.Holding{Holder: e.holder(), Token: e.token(s.floor), ExpiresIn: left[i], Weight: max(e.Weight, 1)}
		if e.slot != nil {
			h.Slot = e.slot.number
		} else if e.several() { // its turn has come, and it has not entered yet
			h.Token, h.Slot = 0, v.freeSlot(i)
		}
		st.Holders = append(st.Holders, h)
	}
	if len(st.Holders) > 0 {
		h := st.Holders[0]
		st.Held, st.Holder, st.Token, st.ExpiresIn = true, h.Holder, h.Token, h.ExpiresIn
		kind := store.Kind(v.places[0].spec())
		if !kind.IsMutex() {
			st.Kind = kind
		} else if len(st.Holders) == 1 {
			st.Holders = nil
		}
	}
	return st
}

// List implements driver.Engine. It reads the keys in pages, all of one revision.
// State.ExpiresIn is the longest that a lease of this package can last. For leases of native
// clients List asks the server.
func (s *engine) List(ctx context.Context, prefix string) ([]store.State, error) {
	places, slots, revision, err := s.readPages(ctx, prefix)
	for range 3 {
		if !isCompacted(err) { // otherwise the revision of the first page cannot be read any more
			break
		}
		places, slots, revision, err = s.readPages(ctx, prefix)
	}
	if err != nil {
		return nil, s.failed(ctx, "list", "", false, err)
	}
	states := make([]store.State, 0, len(places))
	for name, all := range places {
		slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.create, b.create) })
		v := newView(s.layout.lock(name), all, slots[name], revision)
		var left []time.Duration
		for _, e := range v.places[:v.holders()] {
			lasts, err := s.atMost(ctx, e)
			if err != nil {
				return nil, s.failed(ctx, "list", "", false, err)
			}
			left = append(left, lasts)
		}
		states = append(states, s.state(name, v, left))
	}
	slices.SortFunc(states, func(a, b store.State) int { return cmp.Compare(a.Name, b.Name) })
	return states, nil
}

// readPages reads all locks whose names begin with prefix at one revision.
func (s *link) readPages(ctx context.Context, prefix string) (places map[string][]entry, slots map[string][]slot, revision int64, err error) {
	places, slots = make(map[string][]entry), make(map[string][]slot)
	revision, err = s.pages(ctx, s.layout.locks(prefix), 0, func(kv *mvccpb.KeyValue) {
		if name, ok := s.layout.nameOf(string(kv.Key)); ok && strings.HasPrefix(name, prefix) {
			places[name] = append(places[name], entryOf(kv))
		}
	})
	if err != nil {
		return nil, nil, 0, err
	}
	_, err = s.pages(ctx, s.layout.allSlots()+escape(prefix), revision, func(kv *mvccpb.KeyValue) {
		name, ok := s.layout.nameOf(s.layout.base + "/" + strings.TrimPrefix(string(kv.Key), s.layout.allSlots()))
		if is, valid := slotOf(s.layout.slots(name), kv); ok && valid {
			slots[name] = append(slots[name], is)
		}
	})
	return places, slots, revision, err
}

// pages reads all keys with a prefix at a revision; 0: the present one, which it returns.
func (s *link) pages(ctx context.Context, from string, at int64, each func(*mvccpb.KeyValue)) (revision int64, err error) {
	end := clientv3.GetPrefixRangeEnd(from)
	const page = 500
	for revision = at; ; {
		var r *clientv3.GetResponse
		_, err := s.members.run(ctx, func(ctx context.Context, c *client) (err error) {
			r, err = c.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithRev(revision))
			return err
		})
		if err != nil {
			return 0, err
		}
		if revision == 0 {
			revision = r.Header.Revision
		}
		for _, kv := range r.Kvs {
			each(kv)
		}
		if !r.More {
			return revision, nil
		}
		from = string(r.Kvs[len(r.Kvs)-1].Key) + "\x00"
	}
}
