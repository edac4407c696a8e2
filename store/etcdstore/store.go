package etcdstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/audience"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/gate"
	"github.com/leasehold-dev/leasehold/internal/longest"
	"github.com/leasehold-dev/leasehold/internal/unclaimed"
	"github.com/leasehold-dev/leasehold/store"
)

// engine keeps locks in an etcd cluster.
type engine struct {
	*link
	pool     *pool
	holds    holds
	inbox    *inbox
	batches  *batches
	searches chan struct{} // has an entry for each waiter that joins a queue, or reads it from far back
	broken   audience.Audience
	rejoined unclaimed.Places[*place]
	gate     *gate.Gate

	cluster atomic.Pointer[judged]
	asked   atomic.Int64 // when the cluster was last asked about itself
}

// Open returns a store in the etcd cluster that a URL names:
//
//	etcd://USER:PASSWORD@HOST:PORT,HOST:PORT,HOST:PORT/PREFIX?timeout=5s
//	etcds://HOST:PORT/PREFIX?ca=/etc/ssl/ca.pem&cert=/etc/ssl/client.pem&key=/etc/ssl/client.key
//
// The hosts should be all voting members: if one fails, the store asks another. The default
// port is 2379. PREFIX, max_ttl, timeout and floor are those of Options. With etcds, ca names
// a file with the certificates to trust instead of the system's, and cert and key those of
// the client, which are read at each connection. A nil o means the defaults.
//
// Open blocks until a member has answered, ctx ends or Options.Timeout passes. If it fails,
// the error is a *store.QuorumError, or matches store.ErrInvalid and contains no password.
//
// An error of the store that concerns neither the lock nor the caller's context is a
// *store.QuorumError with one node, which is the cluster.
func Open(ctx context.Context, url string, o *Options) (*store.Store, error) {
	endpoints, c, err := parseURL(url, o)
	if err != nil {
		return nil, err
	}
	s := newEngine(endpoints, c)
	if err := s.open(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return store.New(s), nil
}

// newEngine returns an engine that has asked nobody yet.
func newEngine(endpoints []string, c Options) *engine {
	l := &link{o: c, members: newMembers(endpoints, c), layout: layout{c.Prefix}, clock: clock.System(), replaced: replaced{longest: longest.New(c.MaxTTL)}, lookAfter: defaultLookAfter}
	g := gate.New(store.ErrClosed)
	s := &engine{link: l, gate: g, pool: &pool{link: l, gate: g}, batches: newBatches(l, g, mostAlone), searches: make(chan struct{}, mostSearches)}
	// Any user that may lock can write such a message, so the lease is looked at.
	s.inbox = newInbox(l, rand.Text()[:12], func(owner string, create int64) {
		s.holds.suspect(owner, create)
		s.broken.Tell(owner)
	})
	return s
}

// open learns what the cluster is, the smallest token, and the longest TTL.
func (s *engine) open(ctx context.Context) error {
	c := s.examine(ctx)
	s.note(c)
	s.asked.Store(int64(s.clock.Now()))
	if why := cmp.Or(c.split(), c.twice()); why != "" {
		return fmt.Errorf("%w: %s", store.ErrInvalid, why)
	}
	var err error
	if s.floor, err = s.agreeOnFloor(ctx); err == nil {
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
		Resolution: 2 * time.Second,
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
	first := s.gate.Close(s.o.Timeout, func() {
		for _, p := range s.rejoined.Close() {
			s.leave(p)
		}
	})
	if !first {
		return nil
	}
	s.inbox.close()
	s.members.close()
	return nil
}
