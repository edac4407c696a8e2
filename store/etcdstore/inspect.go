package etcdstore

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Inspect implements driver.Engine. A lease that has ended holds its lock until etcd has deleted its
// keys, which takes seconds if many end at once: etcd revokes about a thousand a second.
func (s *engine) Inspect(ctx context.Context, name string) (store.State, error) {
	v, last, err := s.readWithNote(ctx, name)
	if v == nil {
		return store.State{}, s.refused(ctx, "inspect", name, false, err)
	}
	holders := v.places[:v.holders()]
	left, errs := make([]time.Duration, len(holders)), make([]error, len(holders))
	atOnce(holders, func(i int, e entry) { left[i], errs[i] = s.left(ctx, e) })
	if err := cmp.Or(errs...); err != nil {
		return store.State{}, s.failed(ctx, "inspect", name, false, err)
	}
	st := s.state(name, v, left)
	st.Broken = last.decode()
	for _, e := range v.places[len(left):min(len(v.places), len(left)+store.MaxQueue)] {
		st.Queue = append(st.Queue, store.Place{Holder: e.holder(), ExpiresIn: e.lasts()})
	}
	return st, nil
}

// readWithNote is read of the whole lock, with the note about the lease that was broken last, if there is
// one.
func (s *link) readWithNote(ctx context.Context, name string) (*view, *note, error) {
	all := reading{name: name}
	r, _, err := s.commit(ctx, txn{then: append([]operation{get(s.layout.note(name))}, s.layout.reads(all)...)})
	if r == nil {
		return nil, nil, err
	}
	return s.view(all, r), noteOf(r.Responses[0].GetResponseRange().Kvs), err
}

// state returns the state of a lock, without the queue. left says how long the leases of
// the holders can last.
func (s *engine) state(name string, v *view, left []time.Duration) store.State {
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

// List implements driver.Engine. It reads all locks in one transaction. State.ExpiresIn is the longest
// that a lease of this package can last, and zero for those of native clients.
func (s *engine) List(ctx context.Context, prefix string) ([]store.State, error) {
	r, _, err := s.commit(ctx, txn{then: []operation{byAge(s.layout.locks(prefix), 0), getAll(s.layout.allSlots() + escape(prefix))}})
	if r == nil {
		return nil, s.failed(ctx, "list", "", false, err)
	}
	places, slots := make(map[string][]entry), make(map[string][]slot)
	for _, kv := range r.Responses[0].GetResponseRange().Kvs {
		if name, ok := s.layout.nameOf(string(kv.Key)); ok && strings.HasPrefix(name, prefix) {
			places[name] = append(places[name], entryOf(kv))
		}
	}
	for _, kv := range r.Responses[1].GetResponseRange().Kvs {
		name, ok := s.layout.nameOf(s.layout.base + "/" + strings.TrimPrefix(string(kv.Key), s.layout.allSlots()))
		if is, valid := slotOf(s.layout.slots(name), kv); ok && valid {
			slots[name] = append(slots[name], is)
		}
	}
	states := make([]store.State, 0, len(places))
	for name, all := range places {
		v := newView(s.layout.lock(name), all, slots[name], r.Header.Revision)
		var left []time.Duration
		for _, e := range v.places[:v.holders()] {
			left = append(left, e.lasts())
		}
		states = append(states, s.state(name, v, left))
	}
	slices.SortFunc(states, func(a, b store.State) int { return cmp.Compare(a.Name, b.Name) })
	return states, nil
}
