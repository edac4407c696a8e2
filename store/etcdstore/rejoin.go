package etcdstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// rejoined are the places that were made with a release and that no Wait has claimed.
type rejoined struct {
	mu     sync.Mutex
	places map[holdKey]*unclaimed
	closed bool
}

type unclaimed struct {
	*place
	timer *time.Timer
}

// put keeps a place until it is taken, or until its TTL has passed: expired is called
// then. It returns false if the store was closed.
func (j *rejoined) put(p *place, expired func()) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return false
	}
	if j.places == nil {
		j.places = make(map[holdKey]*unclaimed)
	}
	j.places[holdKey{p.of.Name, p.of.Owner}] = &unclaimed{p, time.AfterFunc(p.of.TTL, func() {
		if j.take(p.of) != nil {
			expired()
		}
	})}
	return true
}

// take removes the place of a lease and returns it, or nil if there is none.
func (j *rejoined) take(l store.Lease) *place {
	j.mu.Lock()
	defer j.mu.Unlock()
	u := j.places[holdKey{l.Name, l.Owner}]
	if u == nil {
		return nil
	}
	u.timer.Stop()
	delete(j.places, holdKey{l.Name, l.Owner})
	return u.place
}

// close returns all places.
func (j *rejoined) close() (all []*place) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	for _, u := range j.places {
		u.timer.Stop()
		all = append(all, u.place)
	}
	j.places = nil
	return all
}

// ReleaseAndRejoin implements store.Rejoiner, in one transaction: etcd's log has one
// entry for a turn instead of two.
func (s *Store) ReleaseAndRejoin(ctx context.Context, r store.ReleaseRequest, next store.WaitRequest) (standing bool, err error) {
	caps := s.Caps()
	if err := r.Check(caps); err != nil {
		return false, err
	}
	if err := next.Check(caps); err != nil {
		return false, err
	}
	if r.Name != next.Name || r.Owner == next.Owner {
		return false, fmt.Errorf("%w: release and rejoin of lock %q: the place has to be for the same lock, and of another owner", store.ErrInvalid, r.Name)
	}
	if err := s.gate.Enter(nil); err != nil {
		return false, err
	}
	defer s.gate.Leave()
	if err := ctx.Err(); err != nil {
		return false, s.failed(ctx, "release", r.Name, false, err)
	}
	if err := s.require(ctx, next.Require); err != nil {
		return false, err
	}
	sent := s.clock.Now()
	l, err := s.pool.leaseFor(ctx, next.TTL)
	if err != nil {
		return false, s.failed(ctx, "release", r.Name, false, err)
	}
	p := s.newPlace(next.Lease, l)
	p.sent = sent
	p.mailbox = s.inbox.open(l.id)
	standing, err = s.release(ctx, r, p)
	if !standing {
		s.inbox.forget(p.mailbox)
		s.pool.done(l) // if there may be a place, the lease is tainted
		return false, err
	}
	if !s.rejoined.put(p, func() { s.expire(p) }) {
		s.leave(p)
		return false, nil
	}
	return true, nil
}

// expire ends a place that nobody claimed.
func (s *core) expire(p *place) {
	if s.gate.Enter(nil) == nil {
		defer s.gate.Leave()
		s.leave(p)
	}
}
