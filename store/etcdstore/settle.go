package etcdstore

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// settle gives a place, to which its lock has come, a lease of the present term if its own
// is of an earlier one and does not last for the TTL from start, or if much of it is over. If that
// fails, it gives up the place.
func (s *core) settle(ctx context.Context, p *place, start clock.Instant) error {
	if p.lease.isOf(s.replaced.inTerm()) {
		return nil
	}
	since := p.lease.since()
	late := s.clock.Now().Sub(since) > p.of.TTL/2
	if !late && (since >= start || p.lease.covers(p.of.TTL, start)) {
		return nil // the next renewal does it
	}
	err := s.renew(ctx, []store.Lease{p.of})[0]
	h := s.holds.get(p.of.Name, p.of.Owner)
	if err != nil {
		s.holds.drop(p.of.Name, p.of.Owner, h)
		s.leave(p)
		return err
	}
	if h != nil {
		p.lease = h.lease
	}
	return nil
}
