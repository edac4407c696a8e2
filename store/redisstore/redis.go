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
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
)

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

func init() {
	for _, scheme := range config.Schemes() {
		store.Register(scheme, func(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
			return open(ctx, url, &Options{Logger: o.Logger}, o.Partial)
		})
	}
}

// open is Open. With partial, it also opens independent servers of which only some answer.
func open(ctx context.Context, url string, o *Options, partial bool) (*store.Store, error) {
	if config.NamesCluster(url) {
		c, err := openClusterEngine(ctx, url, o)
		if err != nil {
			return nil, err
		}
		return store.New(c), nil
	}
	s, err := openEngine(ctx, url, o, partial)
	if err != nil {
		return nil, err
	}
	return store.New(s), nil
}

// openEngine connects to independent servers.
func openEngine(ctx context.Context, url string, o *Options, partial bool) (*engine, error) {
	s, err := newStore(url, o)
	if err != nil {
		return nil, err
	}
	if err := s.waitForQuorum(ctx); err != nil && !(partial && someAnswered(err)) {
		s.Close()
		return nil, err
	}
	return s, nil
}

// someAnswered reports whether err, of waitForQuorum, says that some servers can be asked.
func someAnswered(err error) bool {
	e, ok := err.(*store.QuorumError)
	return ok && e.Count(store.Granted) > 0 && !errors.Is(err, membership.ErrSameServer)
}
