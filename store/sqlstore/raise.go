package sqlstore

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// If the server's clock jumps ahead, leases end too early, so a client that notices it grants
// nothing for as long as the longest of them. Before a client asks for a lease of more than
// longest.Least, it records the TTL in the tables. The others read it there after the jump.

// raise records the longest TTL of some leases, if that is needed.
func (s *Store) raise(ctx context.Context, leases ...store.Lease) error {
	for _, l := range leases {
		if !s.longest.Covers(l.TTL) {
			if err := s.recordTTL(ctx, l.Name, l.TTL); err != nil {
				return err
			}
		}
	}
	return nil
}

// recordTTL records ttl if it is the longest, and reads the longest.
func (s *Store) recordTTL(ctx context.Context, name string, ttl time.Duration) error {
	asked := s.clock.Now()
	var recorded int64
	_, err := s.call(ctx, s.calls.longestTTL, func(r row) error { return r.Scan(&recorded) }, micros(ttl))
	if err != nil {
		return s.failed(ctx, "record the TTL of", name, false, err)
	}
	s.longest.Note(duration(recorded), asked)
	return nil
}

// leasesLast returns for how long leases from before a jump of the server's clock, which was
// seen at since, may last.
func (s *Store) leasesLast(since clock.Instant) time.Duration {
	s.jumped.Store(int64(since))
	return s.longest.Since(since, s.clock.Now())
}
