package zkstore

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// Release implements driver.Engine: it removes the owner's place. The place may be in a
// session of another process.
func (s *engine) Release(ctx context.Context, r store.ReleaseRequest) error {
	done, err := s.release(ctx, r)
	if err == nil && !done {
		err = store.ErrNotHeld
	}
	return s.failed(ctx, "release", r.Name, err)
}

// release reports whether it ended a lease.
func (s *engine) release(ctx context.Context, r store.ReleaseRequest) (done bool, err error) {
	if p, ok := s.rejoined.Take(r.Lease); ok {
		if p.removeNow(ctx) != nil {
			s.remove(p.place)
		}
		return false, nil
	}
	h := s.leases.get(leaseKey{r.Name, r.Owner})
	// An undo reads the place, since another attempt may be joining the lease.
	if h != nil && !r.Undo && !h.place.Load().Ended() {
		p := h.place.Load()
		if p.record.isOfAnother(r) {
			return false, nil
		}
		there, zxid, err := p.delete(ctx)
		if err != nil && !p.Ended() {
			return false, err // the lease is kept, for another call
		}
		s.leases.remove(h)
		if err == nil && there {
			if p.sole && zxid != 0 {
				s.free.add(r.Name, lastPlace{p.seq, zxid})
			}
			return true, nil
		}
	}
	t, err := s.anyTree(ctx)
	if err != nil {
		return false, err
	}
	for {
		f, ok, err := t.find(ctx, r.Name, r.Owner)
		if err != nil || !ok || f.record.isOfAnother(r) {
			return false, err
		}
		// A renewal through another handle may move the place in between, and another attempt join.
		there, _, err := t.Delete(ctx, t.dir(r.Name)+"/"+f.name, f.version)
		if !there || errors.Is(err, zk.ErrBadVersion) {
			continue
		}
		if err == nil && h != nil {
			s.leases.remove(h)
		}
		return f.held(), explain(err, t.dir(r.Name))
	}
}

// ReleaseAndRejoin implements driver.Engine, in one transaction: the servers write a turn
// down once instead of twice, and the next place lists the queue without a round trip of its own. It
// makes a place only for a mutex, and only in the session of the lease.
func (s *engine) ReleaseAndRejoin(ctx context.Context, r store.ReleaseRequest, next store.WaitRequest) (queued bool, err error) {
	queued, done, err := s.rejoin(ctx, r, next)
	if !done && (err == nil || errors.Is(err, store.ErrNotHeld)) {
		done, err = s.release(ctx, r)
	}
	if err == nil && !done {
		err = store.ErrNotHeld
	}
	return queued, s.failed(ctx, "release", r.Name, err)
}

// rejoin releases the lease and makes a place. It returns done false, and no error or store.ErrNotHeld, if
// that cannot be done in one transaction: then nothing has changed.
func (s *engine) rejoin(ctx context.Context, r store.ReleaseRequest, next store.WaitRequest) (queued, done bool, err error) {
	h, start := s.leases.get(leaseKey{r.Name, r.Owner}), s.clock.Now()
	old, err := s.held(ctx, h, r, next.TTL)
	if err != nil || old.spec != rule.Mutex || !next.Kind.IsMutex() || old.record.isOfAnother(r) {
		return false, false, err
	}
	p := old.newPlace(next.Lease)
	err = p.create(ctx, old)
	made := func() {
		if h != nil {
			s.leases.remove(h)
		}
	}
	if done = p.czxid != 0; done {
		made()
	}
	if err != nil {
		s.withdraw(ctx, p, made)
		return false, done, ctx.Err() // without that, the servers refuse the new place: the release alone may do
	}
	me := 1 // or more, if the place watches one before it
	if p.set == nil {
		var q lineup
		q, me, err = p.queue(ctx)
		p.early = &q
	}
	if err != nil || me <= 0 || !s.rejoined.Put(next.Lease, reserved{p, start}, func() { s.expired(p) }) {
		if p.removeNow(ctx) != nil {
			s.remove(p)
		}
		return false, true, nil
	}
	return true, true, nil
}

// held returns the place of the lease in the session of that TTL: h or, if that is nil,
// the lease of another store. It returns store.ErrNotHeld if there is none, or h is in another session.
func (s *engine) held(ctx context.Context, h *lease, r store.ReleaseRequest, ttl time.Duration) (*place, error) {
	if h != nil {
		if p := h.place.Load(); !p.Ended() && p.Class() == s.limits.Class(ttl) {
			return p, nil
		}
		return nil, store.ErrNotHeld
	}
	t, err := s.tree(ctx, ttl)
	if err != nil {
		return nil, err
	}
	f, ok, err := t.find(ctx, r.Name, r.Owner)
	if err == nil && (!ok || !f.held()) {
		err = store.ErrNotHeld
	}
	return &place{tree: t, dir: t.dir(r.Name), numbered: f.numbered, record: f.record}, err
}
