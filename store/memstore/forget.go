package memstore

import (
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// keep stores what is left of a record once the lock was handed on, or forgets
// it when nothing is.
func (s *Store) keep(name string, r rule.Record, now clock.Instant) {
	r, _ = rule.Advance(r, s.forgotten+1, now)
	if l := s.lines[name]; l != nil {
		l.tell(r, now)
		if len(l.waiters) == 0 {
			delete(s.lines, name)
		}
	}
	if !r.Idle() {
		s.records[name] = r
		return
	}
	s.forgotten = max(s.forgotten, r.Token)
	delete(s.records, name)
}

// sweepSometimes forgets the locks whose holders let them expire and that
// nobody asked for again. It walks all records once in as many acquires as
// there were records left by the walk before, so it costs each acquire a
// constant share, and there are never more records than twice those living at
// the last walk, and a few.
func (s *Store) sweepSometimes(now clock.Instant) {
	s.untilSweep--
	if s.untilSweep > 0 {
		return
	}
	for name := range s.records {
		s.keep(name, s.settled(name, now), now)
	}
	const least = 128 // fewer are not worth a walk
	s.untilSweep = max(least, len(s.records))
}
