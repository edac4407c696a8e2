package etcdstore

import (
	"context"
	"errors"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// Acquire implements driver.Engine, in one transaction.
func (s *engine) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	start := s.clock.Now()
	if err := s.raise(ctx, "acquire", r.Lease); err != nil {
		return store.Grant{}, err
	}
	if err := s.require(ctx, "acquire", r.Name, r.Require); err != nil {
		return store.Grant{}, err
	}
	for {
		p, g, v, err := s.enter(ctx, r.Lease)
		switch {
		case err != nil:
			return g, err
		case p != nil:
			if gone, err := s.took(ctx, p, start); gone {
				continue
			} else if err != nil {
				return store.Grant{}, err
			}
			return g, nil
		}
		has, ok := v.held(r.Owner)
		if !ok {
			return g, v.with(entry{record: recordOf(r.Lease, &lease{}, "")}).refusal(r.Lease, len(v.places), 0)
		}
		if g, err = s.join(ctx, r.Lease, has); !errors.Is(err, store.ErrNotHeld) {
			if err != nil {
				err = s.refused(ctx, "acquire", r.Name, false, err)
			}
			return g, err
		}
		// It was released meanwhile, or changed.
	}
}

// took notes a place that has the lock. gone is set if its lease is gone already. After an error
// nothing remains of the place.
func (s *engine) took(ctx context.Context, p *place, start clock.Instant) (gone bool, err error) {
	s.own(p)
	switch err := s.settle(ctx, p, start); {
	case errors.Is(err, store.ErrNotHeld):
		return true, nil
	case err != nil:
		s.leave(p)
		return false, s.refused(ctx, "acquire", p.of.Name, true, err)
	}
	return false, nil
}

// enter makes a place that holds the lock at once, if there is room. Otherwise p is nil, v
// is what was read, and nothing remains of the attempt. The first try assumes that nobody
// has the lock. Later ones fail if somebody else came first.
func (s *engine) enter(ctx context.Context, of store.Lease) (p *place, g store.Grant, v *view, err error) {
	ambiguous, again := false, true
	defer func() {
		if err != nil {
			p, err = nil, s.refused(ctx, "acquire", of.Name, ambiguous, err)
		}
	}()
	if err := s.replaced.closed(s.clock.Now()); err != nil {
		return nil, g, nil, err
	}
	for {
		if p == nil {
			l, err := s.pool.leaseFor(ctx, of.TTL)
			if err != nil {
				return nil, g, nil, err
			}
			p = s.newPlace(of, l)
		}
		e := p.entry(s.inbox.process)
		t, made := s.entry(of, e, v)
		r, unsure, err := s.commitPlace(ctx, p, t)
		ambiguous = ambiguous || unsure
		switch {
		case isGone(err) && again: // the lease was revoked, or lost with the data of the server
			p, again = nil, false
			continue
		case err != nil:
			return nil, g, nil, err
		case r.Succeeded:
			p.create, p.slot, made.mod = r.Header.Revision, made.slot.key, r.Header.Revision
			return p, s.admitted(made), nil, nil
		}
		v = s.view(readingFor(of, p.key, 0), r)
		if i := v.index(p.key, 0); i >= 0 { // an earlier try made it
			made := v.places[i]
			p.create, p.slot = made.create, made.slotKey()
			if made.Broken {
				s.leave(p)
				return nil, g, nil, errBroken
			}
			return p, s.admitted(made), nil, nil
		}
		broken := len(r.Responses[0].GetResponseRange().Kvs) != 0
		if broken || v.owner(of.Owner) || rule.Owns(ranked(v.with(e).places), len(v.places)).Verdict != rule.Granted {
			s.pool.done(p.lease)
			if broken {
				return nil, g, nil, errBroken
			}
			return nil, g, v, nil
		}
	}
}

// commitPlace commits the transaction that makes a place. If it fails, nothing is left of the place.
func (s *engine) commitPlace(ctx context.Context, p *place, t txn) (r *clientv3.TxnResponse, ambiguous bool, err error) {
	r, ambiguous, err = s.batches.commit(ctx, p.prefix, t)
	if ambiguous {
		p.lease.tainted.Store(true)
	}
	if err == nil {
		p.lease.answered(r.Header.RaftTerm)
		return r, ambiguous, nil
	}
	if isGone(err) {
		s.pool.forget()
	}
	s.inbox.forget(p.mailbox)
	s.pool.revoke(p.lease)
	return nil, ambiguous, err
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
// view, it does so if nobody has the lock. It returns e as it is made. If the transaction
// fails, it reads the key that refuses the owner, and the lock.
func (s *link) entry(of store.Lease, e entry, v *view) (t txn, made entry) {
	prefix, slots, tombstone := s.layout.lock(of.Name), s.layout.slots(of.Name), s.layout.tombstoneOf(of)
	t.els = append([]operation{get(tombstone)}, s.layout.reads(readingFor(of, e.key, 0))...)
	e.In = !e.several()
	is := slot{}
	if v == nil {
		if t.ifs = []condition{nobody(prefix)}; e.several() {
			t.ifs = append(t.ifs, nobody(slots))
		}
	} else {
		with, me := v.with(e), len(v.places)
		t.ifs = []condition{unchanged(prefix, v.revision)}
		if e.several() {
			is.number = with.freeSlot(me)
			t.ifs = append(t.ifs, absent(s.layout.slot(of.Name, is.number)))
		}
		var guard []condition
		e.record, guard = s.generation(with, me, slots)
		t.ifs = append(t.ifs, guard...)
	}
	t.ifs = append(t.ifs, absent(tombstone))
	t.then = []operation{put(e.key, encode(e.record), e.lease)}
	if e.several() {
		is.key = s.layout.slot(of.Name, is.number)
		t.then = append(t.then, takeSlot(is.key, placeID{Suffix: e.key[len(prefix):]}, e.lease))
	}
	e.slot = &is
	return t, e
}

// takeSlot makes the slot of a place.
func takeSlot(key string, of placeID, l clientv3.LeaseID) operation {
	return put(key, encode(of), l)
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

// join answers an owner that has the lock already: its lease lasts at least as long as
// was asked, and belongs to all of its attempts. The error matches store.ErrNotHeld if
// the lock was released meanwhile, or its place has changed.
func (s *engine) join(ctx context.Context, of store.Lease, has entry) (store.Grant, error) {
	if has.Broken {
		return store.Grant{}, errBroken
	}
	if has.several() && max(of.Weight, 1) > has.Weight { // a lease does not grow
		return store.Grant{}, store.HeavierError("acquire", of)
	}
	if of.Attempt != has.Made {
		// An earlier attempt may be given up meanwhile, or its release fail, and it revokes its lease then.
		if has.several() && of.Kind.IsMutex() { // it may have a slot from before Resize, which was not read
			var err error
			if has, err = s.find(ctx, of); err != nil {
				return store.Grant{}, err
			}
		}
		has.Made = ""
		r := &renewal{of: of, hold: s.holds.get(of.Name, of.Owner)}
		if r.hold == nil || r.hold.create != has.create {
			r.hold = holdOf(has)
		}
		switch err := s.attach(ctx, r, has); {
		case err == errMoved:
			return store.Grant{}, store.ErrNotHeld // the caller reads it again
		case err != nil && err != errNewTerm:
			return store.Grant{}, err
		}
	}
	if errs := s.renew(ctx, []store.Lease{of}); errs[0] != nil {
		return store.Grant{}, errs[0]
	}
	return s.admitted(has), nil
}
