package etcdstore

import (
	"context"

	"github.com/leasehold-dev/leasehold/store"
)

// ReleaseAndRejoin implements driver.Engine, in one transaction: etcd's log has one
// entry for a turn instead of two. It makes no place for a lock that several can hold,
// whose waiters enter beside each other.
func (s *engine) ReleaseAndRejoin(ctx context.Context, r store.ReleaseRequest, next store.WaitRequest) (queued bool, err error) {
	if !r.Kind.IsMutex() || s.require(ctx, "wait for", r.Name, next.Require) != nil || s.raise(ctx, "wait for", next.Lease) != nil {
		return s.release(ctx, r, nil)
	}
	sent := s.clock.Now()
	l, err := s.pool.leaseFor(ctx, next.TTL)
	if err != nil {
		return false, s.failed(ctx, "release", r.Name, false, err)
	}
	p := s.newPlace(next.Lease, l)
	p.sent = sent
	p.mailbox = s.inbox.open(l.id)
	queued, err = s.release(ctx, r, p)
	if !queued {
		s.inbox.forget(p.mailbox)
		s.pool.done(l) // if there may be a place, the lease is tainted
		return false, err
	}
	if !s.rejoined.Put(p.of, p, func() { s.expire(p) }) {
		s.leave(p)
		return false, nil
	}
	return true, nil
}

// expire ends a place that nobody claimed.
func (s *core) expire(p *place) {
	if s.gate.Enter() == nil {
		defer s.gate.Leave()
		s.leave(p)
	}
}
