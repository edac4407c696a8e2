package zkstore

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/gate"
	"github.com/leasehold-dev/leasehold/internal/unclaimed"
	"github.com/leasehold-dev/leasehold/store"
)

// places are the places that a store has in its sessions: those of its leases, and those
// that no Wait has claimed.
type places struct {
	*ensemble
	gate     *gate.Gate
	leases   leases
	rejoined unclaimed.Places[reserved]
	listener listener
	vacant   vacant
}

// reserved is a place that was made with a release and that no Wait has claimed.
type reserved struct {
	*place
	start clock.Instant // before it was asked for
}

// grant makes a lease of a place that has the lock. Its validity counts from at.
func (s *places) grant(ctx context.Context, p *place, l store.Lease, at clock.Instant) (store.Grant, error) {
	if _, err := p.Prove(ctx, at); err != nil {
		return store.Grant{}, err
	}
	if err := ctx.Err(); err != nil {
		return store.Grant{}, err
	}
	h := s.keep(l, p)
	return store.Grant{Token: h.token, Slot: h.slot}, nil
}

// keep makes a lease of a place, which ends after its TTL unless it is renewed.
func (s *places) keep(l store.Lease, p *place) *lease {
	h := newLease(l.Name, p)
	s.leases.add(h, l.TTL, s.expired)
	s.listener.listen(p.tree)
	return h
}

// abandon removes the places that no Wait has claimed. From then on none is kept.
func (s *places) abandon() {
	for _, p := range s.rejoined.Close() {
		s.remove(p.place)
	}
}
