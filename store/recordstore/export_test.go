package recordstore

import (
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// SetClock has s count time by c.
func SetClock(s *store.Store, c clock.Clock) { s.Engine().(*engine).clock = c }
