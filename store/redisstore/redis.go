// Package redisstore keeps locks on one Redis server, or on a majority of several
// independent ones: Redlock, with a fencing token that comes with the lock. On a
// Redis Cluster it keeps each on one of the masters; see Cluster for what that is worth.
//
// The lock L is the key L with the value "owner {...}" and a TTL, so that every
// other client that locks with SET L value NX PX excludes us and is excluded.
// What else belongs to L is at {L}:... .
//
// The servers must be independent masters. A replica that is promoted may not
// know of a lock its master granted, which no client can notice. Where sentinels
// promote replicas (redis-sentinel://), the store says so: its class is
// store.Efficiency. Tokens never go back there either, as long as the servers' clocks
// agree: a resource that checks them refuses a holder whose lock was lost.
package redisstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
)

// Store keeps locks on Redis. It is safe for concurrent use.
type Store struct {
	o         Options
	nodes     []*node
	keeper    driver.Driver
	servers   registry
	sentinels *sentinels       // who know where the only node is; nil: its address is given
	wall      func() time.Time // time of day
	closed    atomic.Bool
	inFlight  atomic.Int64 // calls put in line and not answered yet

	channel string        // by which the servers tell us that our turn has come
	closing chan struct{} // closed by Close
	waiting atomic.Int64  // how many stand in line
	proof   time.Duration // waitingProof
	idle    time.Duration // idleAfter

	// Servers that may have forgotten leases abstain; see guard.
	guarded, armed atomic.Bool
	lists          lists
	longest        atomic.Int64 // quarantine that other clients ask for
	arming         sync.Mutex

	route *router // to the members of a cluster, of which all else is here; see Cluster
}

var _ store.Store = (*Store)(nil)

// Open connects to the nodes that urls name:
//
//	redis://user:password@a:6379,b:6379,c:6379/0?max_ttl=60s&node_timeout=50ms
//
// and rediss:// for TLS. It blocks until a majority answered or can not, for
// Options.ConnectTimeout at most. Nodes that are down are tried again when
// they are needed. It fails with a *store.QuorumError if too few are up, and
// always if one server is listed under two addresses. A nil o means the
// defaults.
//
// Or they name the sentinels that watch a master and its replicas:
//
//	redis-sentinel://user:password@s1:26379,s2:26379,s3:26379/0?master=mymaster
//
// and rediss-sentinel://. The user, the password and the database are the master's;
// Options.SentinelUsername and SentinelPassword are the sentinels'. The store has one
// node then, the master, wherever the sentinels say that it is: they are asked for each
// connection, and each second whether that has changed. A failover can lose locks,
// since replication does not wait: locks that require more than store.Efficiency are
// refused.
func Open(ctx context.Context, urls []string, o *Options) (*Store, error) {
	s, err := newStore(urls, o)
	if err != nil {
		return nil, err
	}
	if err := s.muster(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// newStore returns a Store that has connected to no node yet.
func newStore(urls []string, o *Options) (*Store, error) {
	if o == nil {
		o = &Options{}
	}
	topology := topologyOf(urls)
	addrs, opts, err := topology.parseURLs(urls, *o)
	if err != nil {
		return nil, err
	}
	sentinels, addrs := topology.sentinels(addrs, opts)
	addrs, lists, err := newLists(addrs, opts.Next)
	if err != nil {
		return nil, err
	}
	if opts, err = opts.settle(); err != nil {
		return nil, err
	}
	s := &Store{o: opts, lists: lists, sentinels: sentinels, wall: opts.wall(), servers: registry{ids: map[int]identity{}}, channel: channelBegin + rand.Text(), closing: make(chan struct{}), proof: waitingProof, idle: idleAfter}
	s.keeper = driver.Driver{Sets: lists.sets, Encode: s.encode, EncodeRenewals: s.bundle, NodeTimeout: opts.nodeTimeout, Clock: opts.Clock, Jitter: opts.jitter(), Logger: opts.Logger, Coalesce: s.crowded, Closing: s.closing}
	if len(addrs) > 1 && clocksWatched {
		s.keeper.Clocks = driver.NewClocks(len(addrs), opts.quarantine(), driver.WallAhead(opts.Clock), opts.Logger)
	}
	s.guarded.Store(len(addrs) > 1)
	s.armed.Store(len(addrs) > 1)
	cfg := quorum.Config{Nodes: len(addrs), Sets: lists.sets}
	for _, list := range cfg.JointSets() {
		n := list.Size()
		if n%2 != 0 {
			continue
		}
		opts.Logger.Warn("an even number of nodes survives no more failures than one node less", "nodes", n, "failures", n-quorum.Majority(n))
	}
	if host := sharedHost(addrs); host != "" {
		opts.Logger.Info("nodes share a host, and fail together with it", "host", host)
	}
	if sentinels != nil {
		opts.Logger.Warn("locks can be lost when the sentinels replace the master: the replica that they promote may not know the last grants", "master", sentinels.master)
	}
	s.nodes = make([]*node, len(addrs))
	for i, a := range addrs {
		s.nodes[i] = newNode(i, a, s)
		s.keeper.Nodes = append(s.keeper.Nodes, s.nodes[i])
	}
	return s, nil
}

// crowded says whether so many answers are awaited that others who were just
// answered are about to ask again.
func (s *Store) crowded() bool {
	if len(s.keeper.Nodes) == 1 && s.route == nil {
		return s.inFlight.Load() > crowdOne
	}
	return s.inFlight.Load() > crowdMany
}

// Caps implements store.Store.
func (s *Store) Caps() store.Caps {
	c := store.Caps{
		Engine: "redis", Nodes: len(s.nodes), Quorum: quorum.Majority(len(s.nodes)),
		MaxTTL: s.o.MaxTTL, Reach: "network", Clock: "each server's own",
		Class: store.CrashSafe,
	}
	if s.sentinels != nil {
		c.Class = store.Efficiency
	}
	return c
}

// Acquire implements store.Store.
func (s *Store) Acquire(ctx context.Context, r store.Request) (store.Grant, error) {
	if err := s.ready(ctx, r); err != nil {
		return store.Grant{}, err
	}
	return s.keeper.Acquire(ctx, r)
}

// Renew implements store.Store. All leases are asked for at once, and the
// results are there when each has its majority or can not get it.
func (s *Store) Renew(ctx context.Context, leases []store.Request) []error {
	errs := make([]error, len(leases))
	for i, r := range leases {
		errs[i] = s.check(ctx, r)
	}
	if !slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return s.keeper.Renew(ctx, leases)
	}
	var valid []store.Request
	for i, r := range leases {
		if errs[i] == nil {
			valid = append(valid, r)
		}
	}
	results := s.keeper.Renew(ctx, valid)
	for i := range errs {
		if errs[i] == nil {
			errs[i], results = results[0], results[1:]
		}
	}
	return errs
}

// Release implements store.Store.
func (s *Store) Release(ctx context.Context, r store.Request) error {
	if err := s.check(ctx, r); err != nil {
		return err
	}
	return s.keeper.Release(ctx, r)
}

// ready refuses what is not to be sent to acquire a lock, and prepares for the rest.
func (s *Store) ready(ctx context.Context, r store.Request) error {
	if err := s.check(ctx, r); err != nil {
		return err
	}
	if r.Require >= store.CrashSafe {
		if s.sentinels != nil {
			return fmt.Errorf("%w: lock %q requires %v, and servers that sentinels watch give %v at most", store.ErrUnsupported, r.Name, r.Require, store.Efficiency)
		}
		return s.guard()
	}
	return nil
}

// check refuses what is not to be sent.
func (s *Store) check(ctx context.Context, r store.Request) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	return r.Check(s.o.MaxTTL)
}

func (s *Store) usable(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}
