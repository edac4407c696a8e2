package etcdstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/gate"
	"github.com/leasehold-dev/leasehold/internal/longest"
	"github.com/leasehold-dev/leasehold/store"
)

// engine keeps locks in an etcd cluster.
type engine struct {
	core
	// adds is how much longer than its TTL a lease can be.
	adds time.Duration
}

// Open returns a store in the etcd cluster with these endpoints, such as "10.0.0.1:2379".
// They should be all voting members: if one fails, the store asks another. It blocks until
// a member has answered, ctx ends or Options.Timeout passes. If it fails, the error is
// a *store.QuorumError, or matches store.ErrInvalid. o may be nil.
//
// An error of the store that concerns neither the lock nor the caller's context is a
// *store.QuorumError with one node, which is the cluster.
func Open(ctx context.Context, endpoints []string, o *Options) (*store.Store, error) {
	s, err := open(endpoints, o)
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return store.New(s), nil
}

// open returns a store that has asked nobody yet.
func open(endpoints []string, o *Options) (*engine, error) {
	c, err := o.checked()
	if err != nil {
		return nil, err
	}
	if len(endpoints) == 0 {
		return nil, fmt.Errorf("%w: no endpoint of etcd is given", store.ErrInvalid)
	}
	l := &link{o: c, members: newMembers(endpoints, c), layout: layout{c.Prefix}, clock: clock.System(), replaced: replaced{longest: longest.New(c.MaxTTL)}, lookAfter: defaultLookAfter}
	g := gate.New(store.ErrClosed)
	s := &engine{core: core{link: l, gate: g, pool: &pool{link: l, gate: g}, batches: newBatches(l, g, mostAlone), refreshes: newRefreshes(l, g)}}
	// Any user that may lock can write such a message, so the lease is looked at.
	s.inbox = newInbox(l, rand.Text()[:12], func(owner string, create int64) {
		s.holds.suspect(owner, create)
		s.broken.Tell(owner)
	})
	return s, nil
}

// open learns what the cluster is, how short its leases can be, and the smallest token.
func (s *engine) open(ctx context.Context) error {
	c := s.examine(ctx)
	s.note(c)
	s.asked.Store(int64(s.clock.Now()))
	if why := c.split(); why != "" {
		return fmt.Errorf("%w: %s", store.ErrInvalid, why)
	}
	s.adds = 2 * time.Second
	shortest, err := s.pool.grant(ctx, secondsFor(MinTTL))
	switch {
	case err == nil:
		if c.alike {
			if why := s.clones(ctx, shortest.id); why != "" {
				return fmt.Errorf("%w: %s", store.ErrInvalid, why)
			}
		}
		s.adds = max(s.adds, shortest.lasts-MinTTL)
		s.pool.put(shortest, s.clock.Now())
	case isFull(err): // locks can still be looked at
		err = nil
	}
	if err == nil {
		s.floor, err = s.agreeOnFloor(ctx)
	}
	if err == nil {
		err = s.recordTTL(ctx, 0)
	}
	if err != nil {
		return s.failed(ctx, "open", "", false, err)
	}
	return nil
}

// Caps implements driver.Engine.
func (s *engine) Caps() store.Caps {
	class := store.Consensus // it may be, if it is not known at present
	if is := s.cluster.Load(); !is.pending {
		class = is.class
	}
	return store.Caps{
		Engine:     "etcd",
		Nodes:      1,
		Quorum:     1,
		MinTTL:     MinTTL,
		MaxTTL:     cmp.Or(s.o.MaxTTL, longestLease),
		Resolution: s.adds,
		Timeout:    s.o.Timeout,
		Rejoins:    true,
		Notifies:   true,
		Reach:      "network",
		Clock:      "the monotonic clock of etcd's leader",
		Class:      class,
	}
}

// Close implements driver.Engine. It waits for pending calls and clean-up, for at most
// Options.Timeout. Pending Waits leave the queue.
func (s *engine) Close() error {
	if s.gate.Enter() != nil {
		return nil // it is closed already
	}
	idle, _ := s.gate.Close()
	for _, p := range s.rejoined.Close() {
		s.leave(p)
	}
	s.gate.Leave()
	timer := time.NewTimer(s.o.Timeout)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
	s.inbox.close()
	s.members.close()
	return nil
}
