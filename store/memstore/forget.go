package memstore

import (
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// keep hands the lock to the waiters whose turn has come and stores the record,
// or forgets it if nothing but the last token is left.
func (s *engine) keep(name string, r rule.Record, now clock.Instant) {
	r, _ = rule.Advance(r, s.forgotten+1, now)
	if l := s.queues[name]; l != nil {
		l.notify(r, now)
		if len(l.waiters) == 0 {
			delete(s.queues, name)
		}
	}
	if !r.Idle() {
		s.records[name] = r
		return
	}
	s.forgotten = max(s.forgotten, r.Token)
	delete(s.records, name)
}

// sweepSometimes forgets locks that expired and that nobody has asked for since.
// If a sweep leaves n records, the next one follows n acquires later. The cost
// for each acquire is therefore constant, and the number of records stays below
// about twice the number that were alive at the last sweep.
func (s *engine) sweepSometimes(now clock.Instant) {
	s.untilSweep--
	if s.untilSweep > 0 {
		return
	}
	for name := range s.records {
		s.keep(name, s.settled(name, now), now)
	}
	const least = 128 // fewer are not worth a sweep
	s.untilSweep = max(least, len(s.records))
}
