package etcdstore

import (
	"context"
	"errors"
	"math"

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
	s.examineAgain(ctx)
	if err := s.require(ctx, "acquire", r.Name, r.Require); err != nil {
		return store.Grant{}, err
	}
	if !r.Kind.IsMutex() {
		return s.acquireShared(ctx, r, start)
	}
	for {
		p, revision, first, doubt, err := s.try(ctx, r.Lease)
		switch {
		case err != nil:
			return store.Grant{}, s.refused(ctx, "acquire", r.Name, doubt, err)
		case revision != 0:
			if gone, err := s.took(ctx, p, start); gone {
				continue
			} else if err != nil {
				return store.Grant{}, err
			}
			return s.granted(revision), nil
		case first.spec() != rule.Mutex:
			return store.Grant{}, otherKind(r.Lease, first)
		case first.Owner != r.Owner || first.native:
			return store.Grant{}, s.busy(ctx, r.Name, first, 0)
		}
		g, err := s.join(ctx, r.Lease, first)
		switch {
		case err == nil:
			return g, nil
		case !errors.Is(err, store.ErrNotHeld):
			return store.Grant{}, s.refused(ctx, "acquire", r.Name, false, err)
		}
		// It was released meanwhile.
	}
}

// acquireShared is Acquire for a lock that several can hold.
func (s *core) acquireShared(ctx context.Context, r store.AcquireRequest, start clock.Instant) (store.Grant, error) {
	for {
		p, g, v, doubt, err := s.enter(ctx, r.Lease, math.MaxInt)
		switch {
		case err != nil:
			return g, s.refused(ctx, "acquire", r.Name, doubt, err)
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
			me := len(v.places)
			return g, s.refusal(ctx, r.Lease, v.with(entry{record: recordOf(r.Lease, &lease{}, "")}), me, 0)
		}
		if g, err = s.join(ctx, r.Lease, has); !errors.Is(err, store.ErrNotHeld) {
			if err != nil {
				err = s.refused(ctx, "acquire", r.Name, false, err)
			}
			return g, err
		}
		// It was released meanwhile.
	}
}

// took notes a place that has the lock. gone is set if its lease is gone already. After an error
// nothing remains of the place.
func (s *core) took(ctx context.Context, p *place, start clock.Instant) (gone bool, err error) {
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

// try makes a place if nobody has the lock. revision is not 0 then. Otherwise first is
// the holder, and nothing remains of the attempt.
func (s *core) try(ctx context.Context, of store.Lease) (p *place, revision int64, first entry, doubt bool, err error) {
	if err := s.replaced.closed(s.clock.Now()); err != nil {
		return nil, 0, first, false, err
	}
	for again := false; ; again = true {
		l, err := s.pool.leaseFor(ctx, of.TTL)
		if err != nil {
			return nil, 0, first, false, err
		}
		p = s.newPlace(of, l)
		r, doubt, err := s.batches.commit(ctx, p.prefix, txn{
			ifs:  []condition{nobody(p.prefix), absent(s.layout.tombstoneOf(of))},
			then: []operation{put(p.key, recordOf(of, l, s.inbox.holderProcess()).encode(), l.id)},
			els:  []operation{byAge(p.prefix, 1)},
		})
		if doubt {
			l.tainted.Store(true)
		}
		if err == nil {
			l.answered(r.Header.RaftTerm)
		}
		switch {
		case isGone(err) && !again:
			s.pool.forget()
			continue // the lease was revoked, or lost with the data of the server
		case err != nil:
			s.pool.revoke(l)
			return nil, 0, first, doubt, err
		case r.Succeeded:
			p.create = r.Header.Revision
			return p, p.create, first, doubt, nil
		}
		kvs := r.Responses[0].GetResponseRange().Kvs
		if len(kvs) == 0 {
			s.pool.done(l)
			return nil, 0, first, doubt, errBroken
		}
		if first = entryOf(kvs[0]); first.key == p.key { // an earlier try made it
			p.create = first.create
			if first.Broken {
				s.leave(p)
				return nil, 0, first, doubt, errBroken
			}
			return p, first.mod, first, doubt, nil
		}
		s.pool.done(l)
		return nil, 0, first, doubt, nil
	}
}

// join answers an owner that has the lock already: its lease lasts at least as long as
// was asked, and belongs to all of its attempts. The error matches store.ErrNotHeld if
// the lock was released meanwhile.
func (s *core) join(ctx context.Context, of store.Lease, has entry) (store.Grant, error) {
	if has.Broken {
		return store.Grant{}, errBroken
	}
	if err := has.fits(of); err != nil {
		return store.Grant{}, err
	}
	if of.Attempt != has.Made && has.Made != "" {
		kept := has.record
		kept.Made, kept.Token = "", has.token(s.floor)
		r, _, err := s.commit(ctx, txn{
			ifs:  []condition{created(has.key, has.create), modified(has.key, has.mod)},
			then: []operation{replace(has.key, kept.encode())},
			els:  []operation{get(has.key)},
		})
		if err != nil {
			return store.Grant{}, err
		}
		if !r.Succeeded {
			now := entriesOf(r.Responses[0].GetResponseRange().Kvs)
			if len(now) == 0 || now[0].create != has.create {
				return store.Grant{}, store.ErrNotHeld // it was released meanwhile
			}
			now[0].slot = has.slot
			return s.join(ctx, of, now[0])
		}
		has.record = kept
	}
	if errs := s.renew(ctx, []store.Lease{of}); errs[0] != nil {
		return store.Grant{}, errs[0]
	}
	g := store.Grant{Token: has.token(s.floor)}
	if has.slot != nil {
		g.Slot = has.slot.number
	}
	return g, nil
}
