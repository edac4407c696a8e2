// Package redisstore keeps locks on one Redis server, or on a majority of several
// independent servers. The algorithm is Redlock, extended by a fencing token that each
// grant carries. Locks can also be kept on a Redis Cluster, each on one master, with
// weaker guarantees. All of them keep locks of every kind: mutexes, semaphores and
// read-write locks. Open describes the URLs, which store.Open understands too.
//
// Lock L is the key L with the value "owner {...}" and a TTL. Any other client that locks
// with SET L value NX PX therefore excludes this one, and is excluded by it. All other
// data of lock L is in keys that begin with {L}:. A semaphore or read-write lock has one
// record of all its holders at the key L, so such clients take it for held by another one.
//
// The servers must be independent masters. A promoted replica may not know of a lock that
// its master granted, and no client can notice that. If sentinels promote replicas
// (redis-sentinel://), the class of the store is therefore store.Efficiency. Even then
// tokens do not go back, as long as the servers' clocks agree: a resource that checks
// tokens refuses a holder whose lock was lost.
package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/sentinel"
)

// engine keeps locks on independent servers, or on one.
type engine struct {
	fleet
	changer
}

// Open connects to the nodes that url names:
//
//	redis://user:password@a:6379,b:6379,c:6379/0?max_ttl=60s&node_timeout=50ms
//
// The scheme rediss:// selects TLS. One host is a single server, several hosts are
// independent servers that decide by majority. If they need a URL each, because their
// passwords differ, url holds all of them, separated by white space. One server on this
// machine can also be named by its unix socket:
//
//	unix://user:password@/run/redis.sock?db=0&max_ttl=60s
//
// A nil o means the defaults.
//
// Open blocks until a majority of the nodes has answered or cannot answer any more, at
// most for Options.ConnectTimeout. A node that is down is tried again when it is needed.
// Open fails with a *store.QuorumError if too few nodes are up, or if one server is
// listed under two addresses. If the URL or the options are wrong, it fails with
// store.ErrInvalid before it sends anything.
//
// The URL can instead name the sentinels that watch a master and its replicas:
//
//	redis-sentinel://user:password@s1:26379,s2:26379,s3:26379/0?master=mymaster
//
// The scheme rediss-sentinel:// selects TLS. The user, the password and the database are
// those of the master; Options.SentinelUsername and SentinelPassword are those of the
// sentinels. The store then has one node, the current master. It asks the sentinels for
// the master's address before each connection, and once a second whether it has changed.
// A failover can lose locks, because replication is asynchronous: locks that require more
// than store.Efficiency are refused.
//
// Or the URL names some members of a cluster, masters or replicas:
//
//	redis-cluster://user:password@a:6379,b:6379?max_ttl=60s&node_timeout=50ms
//
// The scheme rediss-cluster:// selects TLS. Open then blocks until one of the members has
// named the others, at most for Options.ConnectTimeout for each member tried, and fails
// with a *store.QuorumError if no member does. All members must accept the same user,
// password and certificates. Options.Next and FsyncAlways are for independent servers and
// are refused.
//
// On a cluster the store keeps each lock on the one master that serves its slot.
// Its class is store.Efficiency, which is weaker than that of independent servers. A
// replica lags behind its master, so a promoted replica may not know of the latest grants
// and may grant those locks again. Tokens do not go back, as long as the servers' clocks
// agree. Locks stay held while their slots move, and waiters keep their places; while a
// lock's own slot is being moved, the lock can be neither acquired nor released, and a break
// of its lease waits.
func Open(ctx context.Context, url string, o *Options) (*store.Store, error) {
	return open(ctx, url, o, false)
}

// newStore returns a Store that has not connected to any node yet.
func newStore(url string, o *Options) (*engine, error) {
	addrs, opts, err := config.Parse(url, o.settings())
	if err != nil {
		return nil, err
	}
	sentinels, addrs := sentinel.New(addrs, opts)
	addrs, lists, err := membership.New(addrs, opts.Next)
	if err != nil {
		return nil, err
	}
	mostTTL := cmp.Or(opts.MaxTTL, config.LongestTTL)
	if opts, err = opts.WithDefaults(); err != nil {
		return nil, err
	}
	s := newBareStore(opts)
	s.mostTTL = mostTTL
	s.membership, s.topology, s.class, s.channel = lists, independent{}, store.CrashSafe, script.ChannelBegin+rand.Text()
	s.driver = driver.Driver[*script.Command]{Sets: lists.Sets, Encode: s.encode, EncodeRenewals: s.bundle, NodeTimeout: s.nodeTimeout, Clock: opts.Clock, Wall: s.wall, Jitter: opts.Jitter(), Logger: opts.Logger, Coalesce: s.manyInFlight, Closing: s.closing}
	s.changer = changer{check: s.usable, newEncoder: s.encoder, askLock: askSingle(s)}
	if len(addrs) > 1 {
		s.changer.several = &s.driver
	}
	if len(addrs) > 1 && clocksWatched {
		s.driver.Clocks = driver.NewClocks(len(addrs), func(clock.Instant) time.Duration { return s.quarantine() }, driver.WallAhead(opts.Clock), opts.Logger)
	}
	s.guarded.Store(len(addrs) > 1)
	s.armed.Store(len(addrs) > 1)
	cfg := quorum.Config{Nodes: len(addrs), Sets: lists.Sets}
	for _, list := range cfg.JointSets() {
		n := list.Size()
		if n%2 != 0 {
			continue
		}
		opts.Logger.Warn("an even number of nodes tolerates no more failures than one node fewer", "nodes", n, "failures", n-quorum.Majority(n))
	}
	if host := config.SharedHost(addrs); host != "" {
		opts.Logger.Info("nodes share a host and fail together", "host", host)
	}
	if sentinels != nil {
		s.topology, s.class = watched{group: sentinels}, store.Efficiency
		opts.Logger.Warn("a failover can lose locks: the promoted replica may not know the latest grants", "master", sentinels.Master)
	}
	s.nodes, s.size = make([]*node, len(addrs)), len(addrs)
	for i, a := range addrs {
		s.nodes[i] = newNode(i, a, &s.fleet)
		s.voters = append(s.voters, s.nodes[i])
		s.driver.Nodes = append(s.driver.Nodes, s.nodes[i])
	}
	return s, nil
}

// newBareStore returns a Store without nodes.
func newBareStore(o config.Config) *engine {
	s := &engine{fleet: fleet{core: core{o: o, wall: o.Wall(), user: userOf(o.Clock), closing: make(chan struct{}), pushTestAfter: pushTestAfter}, joining: make(chan struct{}, 1)}}
	s.inlineFor.Store(int64(conn.InlineFor))
	return s
}

// Caps implements driver.Engine.
func (s *engine) Caps() store.Caps {
	c := store.Caps{
		Engine: "redis", Nodes: len(s.nodes), Quorum: quorum.Majority(len(s.nodes)),
		MaxTTL: s.mostTTL, Reach: "network", Clock: "each server's own",
		Class: s.class,
		// A single server hands on the sooner, the less it has to do besides.
		Rejoins:  len(s.nodes) > 1,
		Notifies: true, EndsCalls: true,
	}
	if len(s.nodes) > 1 {
		c.MaxPermits = rule.MaxSlots
	}
	return c
}

// Acquire implements driver.Engine.
func (s *engine) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	if err := s.ready(ctx, r.Lease); err != nil {
		return store.Grant{}, err
	}
	return s.driver.Acquire(ctx, r)
}

// Renew implements driver.Engine. It renews all leases at once, and returns when each lease
// has its majority or cannot get it.
func (s *engine) Renew(ctx context.Context, leases []store.Lease) []error {
	errs := make([]error, len(leases))
	for i, r := range leases {
		errs[i] = cmp.Or(s.ready(ctx, r), s.checkSlots(r))
	}
	if !slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return s.driver.Renew(ctx, leases)
	}
	var valid []store.Lease
	for i, r := range leases {
		if errs[i] == nil {
			valid = append(valid, r)
		}
	}
	results := s.driver.Renew(ctx, valid)
	for i := range errs {
		if errs[i] == nil {
			errs[i], results = results[0], results[1:]
		}
	}
	return errs
}

// checkSlots returns nil if r, which is to be renewed, names its slots. On several servers one
// of them may have granted it others, which must not count.
func (s *engine) checkSlots(r store.Lease) error {
	if len(s.nodes) <= 1 || r.Kind.IsMutex() || r.Kind.Shared || rule.Spec(r.Kind).Has(rule.SlotsOf(r.Slots...), max(r.Weight, 1)) {
		return nil
	}
	return fmt.Errorf("%w: renew a lease of the %v %q: its slots are %v, and have to be those of the grant", store.ErrInvalid, r.Kind, r.Name, r.Slots)
}

// Release implements driver.Engine.
func (s *engine) Release(ctx context.Context, r store.ReleaseRequest) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	return s.driver.Release(ctx, r)
}

// ready refuses a request to acquire that the servers cannot fulfil, and has the mark of a single server checked if the lock requires that.
func (s *engine) ready(ctx context.Context, r store.Lease) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	if r.Require >= store.CrashSafe {
		if err := cmp.Or(s.topology.ready(&s.fleet, r), r.CheckClass(s.Caps())); err != nil {
			return err
		}
	}
	s.noteTTL(r.TTL)
	if err := s.take(ctx); err != nil {
		return err
	}
	return s.raise(ctx, r)
}
