package zkstore

import (
	"context"
	"errors"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// Acquire implements store.Store. It makes a place in the queue: if that is the first, it
// has the lock, and otherwise Acquire removes it again.
func (s *Store) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	if err := s.gate.Enter(r.Check(s.Caps())); err != nil {
		return store.Grant{}, err
	}
	defer s.gate.Leave()
	if err := s.require(r.Require); err != nil {
		return store.Grant{}, err
	}
	ctx, cancel := s.limited(ctx)
	defer cancel()
	g, err := s.acquire(ctx, r)
	if err != nil && !errors.Is(err, store.ErrBusy) {
		return store.Grant{}, s.failed(ctx, "acquire", r.Name, err)
	}
	return g, err
}

func (s *Store) acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	start := s.clock.Now()
	if err := ctx.Err(); err != nil {
		return store.Grant{}, err
	}
	if s.leases.get(leaseKey{r.Name, r.Owner}) != nil {
		if g, err := s.confirm(ctx, r, start); !errors.Is(err, store.ErrNotHeld) {
			return g, err
		}
	}
	if s.busy.lately(r.Name) {
		if err := s.look(ctx, r); err != nil {
			return store.Grant{}, err
		}
	}
	p, err := s.enqueue(ctx, r.Lease, r.Spare)
	if err != nil {
		return store.Grant{}, err
	}
	q, me, err := p.queue(ctx)
	if err != nil {
		s.remove(p)
		return store.Grant{}, err
	}
	switch {
	case me < 0: // somebody else has removed it
		p.leave()
		return store.Grant{}, errRemoved
	case q.owns(me).Verdict == rule.Granted:
		g, err := s.granted(ctx, p, r.Lease, start)
		if err != nil {
			s.remove(p)
		}
		return g, err
	}
	g, err := s.refused(ctx, p, q, r, start)
	if errors.Is(err, errFree) {
		// The holder has left since: a new place would have been the first.
		s.busy.forget(r.Name)
		return s.acquire(ctx, r)
	}
	return g, err
}

// errRemoved means that somebody else has removed a place.
var errRemoved = errors.New("another client has removed the place in the queue")

// errFree means that the holder of a lock has left while it was looked at.
var errFree = errors.New("the lock is free")

// granted makes a lease of a place that has the lock. Its validity counts from at.
func (s *Store) granted(ctx context.Context, p *place, l store.Lease, at clock.Instant) (store.Grant, error) {
	if _, err := p.Prove(ctx, at); err != nil {
		return store.Grant{}, err
	}
	if err := ctx.Err(); err != nil {
		return store.Grant{}, err
	}
	s.busy.forget(l.Name)
	h := newLease(l.Name, p)
	s.leases.add(h, l.TTL, s.expired)
	return store.Grant{Token: h.token, Spare: h.spare}, nil
}

// refused removes a place that has not got the lock, and names the holder. If that is
// another place of the same owner, refused confirms the grant.
func (s *Store) refused(ctx context.Context, p *place, q queue, r store.AcquireRequest, start clock.Instant) (store.Grant, error) {
	var wg sync.WaitGroup
	wg.Go(func() {
		if p.removeNow(ctx) != nil {
			s.remove(p)
		}
	})
	n, ok, err := p.Get(ctx, p.dir+"/"+q[0].name)
	wg.Wait()
	switch {
	case err != nil:
		return store.Grant{}, err
	case !ok:
		return store.Grant{}, errFree
	}
	rec, ours := decodeRecord(n.Data)
	if ours && rec.Owner == r.Owner {
		g, err := s.confirm(ctx, r, start)
		if errors.Is(err, store.ErrNotHeld) {
			err = errFree
		}
		return g, err
	}
	s.busy.add(r.Name)
	return store.Grant{}, p.busyError(r.Name, q[0], rec, ours)
}

// look returns a *store.BusyError if another owner has the lock.
func (s *Store) look(ctx context.Context, r store.AcquireRequest) error {
	ss, leave, err := s.tree(ctx, r.TTL)
	if err != nil {
		return err
	}
	defer leave()
	if err := ss.Sync(ctx); err != nil {
		return err
	}
	q, err := ss.children(ctx, ss.dir(r.Name))
	if err != nil || len(q) == 0 {
		return err
	}
	n, ok, err := ss.Get(ctx, ss.dir(r.Name)+"/"+q[0].name)
	if err != nil || !ok {
		return err
	}
	rec, ours := decodeRecord(n.Data)
	if ours && rec.Owner == r.Owner {
		return nil
	}
	return ss.busyError(r.Name, q[0], rec, ours)
}
