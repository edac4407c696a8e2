package storetest

import (
	"context"
	"slices"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// rejoining is a flawed store that can also release a lock and rejoin its queue.
type rejoining struct {
	*flawed
	mine   sync.Mutex
	places map[string]vacantPlace // the unclaimed places of this handle, by owner
}

// vacantPlace is a place that was taken with a release and has no Wait yet.
type vacantPlace struct {
	place *place
	start clock.Instant
}

func newRejoining(s *store.Store) *store.Store {
	return store.New(&rejoining{flawed: s.Engine().(*flawed), places: make(map[string]vacantPlace)})
}

func (s *rejoining) ReleaseAndRejoin(ctx context.Context, r store.ReleaseRequest, next store.WaitRequest) (queued bool, err error) {
	v := vacantPlace{&place{WaitRequest: next}, clock.System().Now()}
	if queued = s.add(r, v); queued {
		s.mine.Lock()
		s.places[next.Owner] = v
		s.mine.Unlock()
	}
	if s.is("a rejoin releases nothing") {
		return queued, nil
	}
	return queued, s.Release(ctx, r)
}

// add puts a place into the queue of the lock that r releases. It returns false if there is no
// waiter to wait behind, or if r does not hold the lock.
func (s *rejoining) add(r store.ReleaseRequest, v vacantPlace) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.look(s.key(r.Name))
	switch {
	case l.owner != r.Owner && !s.is("a rejoin without the lock takes a place"):
		return false
	case len(l.queue) == 0 && !s.is("a rejoin waits behind nobody"):
		return false
	case s.is("an unclaimed place is granted nothing"):
		return true
	case s.is("a rejoin comes first"):
		l.queue = slices.Insert(l.queue, 0, v.place)
	default:
		l.queue = append(l.queue, v.place)
	}
	return true
}

// claim returns the unclaimed place of an owner, if there is one. It is then claimed.
func (s *rejoining) claim(owner string) (v vacantPlace, ok bool) {
	s.mine.Lock()
	defer s.mine.Unlock()
	v, ok = s.places[owner]
	delete(s.places, owner)
	return v, ok
}

func (s *rejoining) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
	if v, ok := s.claim(r.Owner); ok {
		return s.waitAt(ctx, v.place, v.start, reason)
	}
	return s.flawed.Wait(ctx, r, reason)
}

func (s *rejoining) Release(ctx context.Context, r store.ReleaseRequest) error {
	v, ok := s.claim(r.Owner)
	if !ok {
		return s.flawed.Release(ctx, r)
	}
	if !s.is("an abandoned place stays") {
		s.leave(v.place)
	}
	return store.ErrNotHeld
}

func (s *rejoining) Close() error {
	s.mine.Lock()
	defer s.mine.Unlock()
	for _, v := range s.places {
		if !s.is("an unclaimed place outlives the store") {
			s.leave(v.place)
		}
	}
	clear(s.places)
	return s.flawed.Close()
}
