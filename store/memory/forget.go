package memory

import (
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// keep stores what is left of a record, or forgets it when nothing is.
func (s *Store) keep(name string, r rule.Record) {
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
	for name, r := range s.records {
		s.keep(name, rule.Expire(r, now))
	}
	const least = 128 // fewer are not worth a walk
	s.untilSweep = max(least, len(s.records))
}
