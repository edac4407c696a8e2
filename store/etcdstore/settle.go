package etcdstore

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// settle is called when the lock has come to the place. It gives the place a new lease if its own
// doesn't last for the TTL from start, or if much of that is over and keep-alives of it don't count any more.
func (s *core) settle(ctx context.Context, p *place, start clock.Instant) error {
	since := p.lease.since()
	lasts := since >= start || p.lease.covers(p.of.TTL, start)
	if lasts && (p.lease.isOf(s.replaced.inTerm()) || s.clock.Now().Sub(since) <= p.of.TTL/2) {
		return nil
	}
	err := s.renew(ctx, []store.Lease{p.of})[0]
	h := s.holds.get(p.of.Name, p.of.Owner)
	if err != nil {
		s.holds.drop(p.of.Name, p.of.Owner, h)
		return err
	}
	if h != nil {
		p.lease = h.lease
	}
	return nil
}
