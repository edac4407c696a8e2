package etcdstore

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// enter makes a place that holds the lock at once, if there is room. Otherwise p is nil, v
// is what was read, and nothing remains of the attempt. The first try assumes that nobody
// has the lock. Later ones fail if somebody else came first; after so many of them, p is
// nil also if there is room.
func (s *core) enter(ctx context.Context, of store.Lease, tries int) (p *place, g store.Grant, v *view, doubt bool, err error) {
	if err := s.replaced.closed(s.clock.Now()); err != nil {
		return nil, g, nil, false, err
	}
	l, err := s.pool.leaseFor(ctx, of.TTL)
	if err != nil {
		return nil, g, nil, false, err
	}
	p = s.newPlace(of, l)
	e := entry{record: recordOf(of, l, s.inbox.holderProcess()), key: p.key, lease: l.id}
	again := false
	for try := 1; ; try++ {
		t, entering, number := s.entry(of, e, v)
		r, unsure, err := s.commit(ctx, t)
		if doubt = doubt || unsure; doubt {
			l.tainted.Store(true)
		}
		if err == nil {
			l.answered(r.Header.RaftTerm)
		}
		switch {
		case isGone(err) && !again:
			again = true
			s.pool.forget()
			if l, err = s.pool.leaseFor(ctx, of.TTL); err != nil {
				return nil, g, nil, doubt, err
			}
			p = s.newPlace(of, l)
			e.record, e.key, e.lease = recordOf(of, l, s.inbox.holderProcess()), p.key, l.id
			continue
		case err != nil:
			s.pool.revoke(l)
			return nil, g, nil, doubt, err
		case r.Succeeded:
			p.create, p.slot = r.Header.Revision, s.layout.slot(of.Name, number)
			entering.mod, entering.slot = r.Header.Revision, &slot{number: number}
			return p, s.admitted(entering), nil, doubt, nil
		}
		v = s.view(of.Name, r)
		if i := v.index(p.key, 0); i >= 0 { // an earlier try made it
			made := v.places[i]
			p.create, p.slot = made.create, made.slotKey()
			if made.Broken {
				s.leave(p)
				return nil, g, nil, doubt, errBroken
			}
			return p, s.admitted(made), nil, doubt, nil
		}
		if len(r.Responses[0].GetResponseRange().Kvs) != 0 {
			s.pool.done(l)
			return nil, g, nil, doubt, errBroken
		}
		if try == tries || v.owner(of.Owner) || rule.Owns(ranked(v.with(e).places), len(v.places)).Verdict != rule.Granted {
			s.pool.done(l)
			return nil, g, v, doubt, nil
		}
	}
}

// owner reports whether the owner has a place.
func (v *view) owner(owner string) bool {
	for _, e := range v.places {
		if e.Owner == owner && !e.native {
			return true
		}
	}
	return false
}

// entry is the transaction that makes the place e and its slot behind all of v. Without a
// view, it does so if nobody has the lock. It returns e as it is made, and the slot. If it
// fails, it reads the key that refuses the owner, and the lock.
func (s *link) entry(of store.Lease, e entry, v *view) (t txn, made entry, number int64) {
	name, tombstone := of.Name, s.layout.tombstoneOf(of)
	prefix, slots := s.layout.lock(name), s.layout.slots(name)
	t = txn{ifs: []condition{nobody(prefix), nobody(slots)}, els: append([]operation{get(tombstone)}, s.layout.readAll(name)...)}
	if v != nil {
		with := v.with(e)
		me := len(v.places)
		number = with.freeSlot(me)
		t.ifs = []condition{unchanged(prefix, v.revision), absent(s.layout.slot(name, number))}
		var guard []condition
		e.record, guard = s.generation(with, me, slots)
		t.ifs = append(t.ifs, guard...)
	}
	t.ifs = append(t.ifs, absent(tombstone))
	t.then = []operation{
		put(e.key, e.record.encode(), e.lease),
		s.layout.take(name, number, successor{Suffix: e.key[len(prefix):]}, e.lease),
	}
	return t, e, number
}

// generation returns the record with which the place at index me enters, and what has to
// be so then. A reader has the token of another reader, which has to be inside. If there is
// none, nobody may have entered before it.
func (s *link) generation(v *view, me int, slots string) (has record, guard []condition) {
	has = v.places[me].record
	if !has.sharesToken() {
		return has, nil
	}
	if other, ok := v.companion(me); ok {
		has.Token = other.token(s.floor)
		return has, []condition{created(other.key, other.create)}
	}
	return has, []condition{unchanged(slots, v.revision)}
}

// admitted returns the grant of a place that has entered.
func (s *link) admitted(e entry) store.Grant {
	return store.Grant{Token: e.token(s.floor), Slot: e.slot.number}
}

// fits returns an error if the owner of has asks for more than it has: a lease does not
// grow.
func (e entry) fits(of store.Lease) error {
	if e.several() && max(of.Weight, 1) > e.Weight {
		return store.HeavierError("acquire", of)
	}
	return nil
}
