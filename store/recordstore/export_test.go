package recordstore

import "github.com/leasehold-dev/leasehold/internal/clock"

// SetClock has s count time by c.
func (s *Store) SetClock(c clock.Clock) { s.clock = c }
