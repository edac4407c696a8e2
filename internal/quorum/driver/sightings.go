package driver

import (
	"maps"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// seen remembers since when those are known who have the lock at some node. Who has
// some of the nodes for long, and not enough of them, has died; one attempt after
// the other would else find out, and wait for it each time.
type sightings struct {
	mu     sync.Mutex
	owners map[string]sighting
}

type sighting struct{ first, last clock.Instant }

const (
	// mostSeen owners are remembered, as a rule,
	mostSightings = 256
	// and those for so long after they were last seen.
	rememberFor = 30 * time.Second
)

// since is when owner, who is seen now, was first seen.
func (s *sightings) since(owner string, now clock.Instant) clock.Instant {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owners == nil {
		s.owners = make(map[string]sighting)
	}
	o, known := s.owners[owner]
	if !known {
		o.first = now
		if len(s.owners) >= mostSightings {
			s.forget(now)
		}
	}
	o.last = max(o.last, now)
	s.owners[owner] = o
	return o.first
}

// forget makes room. Most owners had the lock and are gone.
func (s *sightings) forget(now clock.Instant) {
	for keep := rememberFor; len(s.owners) > mostSightings/2; keep /= 4 {
		maps.DeleteFunc(s.owners, func(_ string, o sighting) bool { return now.Sub(o.last) >= keep })
		if keep == 0 {
			return
		}
	}
}
