package etcdstore

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// settle is called when the lock has come to the place. It renews the lease of the place if that
// doesn't last for the TTL from start, or if much of it is over and keep-alives of it don't count any
// more. Then the place has another lease.
func (s *core) settle(ctx context.Context, p *place, start clock.Instant) error {
	since := p.lease.since()
	lasts := since >= start || p.lease.covers(p.of.TTL, start)
	if lasts && (p.lease.isOf(s.replaced.inTerm()) || s.clock.Now().Sub(since) <= p.of.TTL/2) {
		return nil
	}
	r := s.renewals(ctx, []store.Lease{p.of})[0]
	if r.err != nil {
		s.holds.drop(p.of.Name, p.of.Owner, s.holds.get(p.of.Name, p.of.Owner))
		return r.err
	}
	p.lease = r.hold.lease
	if s.holds.get(p.of.Name, p.of.Owner) == nil { // it was over, and dropped
		s.holds.put(p.of.Name, p.of.Owner, r.hold, s.clock.Now())
	}
	return nil
}
