package etcdstore

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// A leader that stands still for longer than a lease lasts, such as in a virtual machine that is
// paused, is replaced. When it goes on, it may have leases revoked that live: it knows nothing of
// the keep-alives that its successor has answered. etcd 3.6.15 does so in most cases if more
// than 16 leases are over by its count. It asks for the first 16 before it learns that it was
// replaced, and for the others when these requests have timed out, seven seconds later.
//
// It does not know the leases that were granted in the term of a successor: it learns of these and
// of the successor at once. So a keep-alive counts only in the term of the leader in which the lease
// was granted, and a holder moves to another lease after each change of the leader. Then the
// leader that has answered the keep-alive is the last one that knows the lease and could revoke it.
//
// The header of an answer has the term of the last entry of the log that the member has applied. So
// that term has begun, and an entry that is made later is of that term or of a later one.

// isOf reports whether the lease was granted in this term, or later.
func (l *lease) isOf(term uint64) bool { return l.term >= term }

// answered is called when a majority has answered a request, which was sent after the last
// keep-alive was answered, and has shown that the lease of a place is there.
func (s *link) answered(l *lease) { l.keptAlive(l.kept, s.replaced.inTerm()) }

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
