package driver

import (
	"maps"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// sightings remembers when each owner was first seen to hold the lock at some node. An
// owner that has had a minority of the nodes for long has died. Without this memory every
// attempt would wait to find that out by itself.
type sightings struct {
	mu     sync.Mutex
	owners map[string]sighting
}

type sighting struct{ first, last clock.Instant }

const (
	// mostSightings is how many owners are remembered, as a rule.
	mostSightings = 256
	// rememberFor is how long an owner is remembered after it was last seen.
	rememberFor = 30 * time.Second
)

// since returns when owner, which is seen now, was first seen.
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

// forget makes room: most owners no longer hold the lock.
func (s *sightings) forget(now clock.Instant) {
	for keep := rememberFor; len(s.owners) > mostSightings/2; keep /= 4 {
		maps.DeleteFunc(s.owners, func(_ string, o sighting) bool { return now.Sub(o.last) >= keep })
		if keep == 0 {
			return
		}
	}
}
