package zkstore

import (
	"context"

	"github.com/leasehold-dev/leasehold/store"
)

// Release implements driver.Engine: it removes the owner's place. The place may be in a
// session of another process.
func (s *engine) Release(ctx context.Context, r store.ReleaseRequest) error {
	done, err := s.places.release(ctx, r)
	switch {
	case err != nil:
		return s.failed(ctx, "release", r.Name, err)
	case !done:
		return store.ErrNotHeld
	}
	return nil
}

// release reports whether it ended a lease.
func (s *places) release(ctx context.Context, r store.ReleaseRequest) (done bool, err error) {
	if p, ok := s.rejoined.Take(r.Lease); ok {
		if p.removeNow(ctx) != nil {
			s.remove(p.place)
		}
		return false, nil
	}
	h := s.leases.get(leaseKey{r.Name, r.Owner})
	if h != nil && !h.place.Load().Ended() {
		p := h.place.Load()
		if p.record.isOfAnother(r) {
			return false, nil
		}
		zxid, there, err := p.delete(ctx)
		switch {
		case err != nil && !p.Ended():
			return false, err // the lease is kept, for another call
		case s.leases.remove(h):
			p.leave()
		}
		if err == nil && there {
			if p.alone && zxid != 0 {
				s.vacant.add(r.Name, vacancy{p.seq, zxid, p.nodeVersion, s.clock.Now()})
			}
			return true, nil
		}
	}
	t, leave, err := s.anyTree(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	for {
		f, ok, err := t.find(ctx, r.Name, r.Owner)
		if err != nil || !ok || f.record.isOfAnother(r) {
			return false, err
		}
		// A renewal through another handle may move the place in between.
		_, there, err := t.Delete(ctx, t.dir(r.Name)+"/"+f.name)
		if there || err != nil {
			return there && f.held(), explain(err, t.dir(r.Name))
		}
	}
}
