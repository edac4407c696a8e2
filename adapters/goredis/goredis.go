// Package goredis opens stores with the options of a go-redis client, so that a program
// configures Redis once. The store has connections of its own.
package goredis

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/leasehold-dev/leasehold/adapters/internal/redisurl"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// Open opens a store on the server of o: see redisstore.Open. It takes over the address,
// the database, TLS, the credentials, the dialer and DialTimeout; these win over the same
// settings in more, which has the rest. A nil more means the defaults. A Dialer is used as
// go-redis uses it: it makes TLS connections itself, and TLSConfig is ignored.
//
// The error matches store.ErrInvalid if o.Addr is not one address, or if o has a
// StreamingCredentialsProvider, which the store cannot follow: use
// CredentialsProviderContext.
func Open(ctx context.Context, o *redis.Options, more *redisstore.Options) (*store.Store, error) {
	s := settings{o.TLSConfig, o.Dialer, o.DialTimeout, o.Username, o.Password, o.CredentialsProvider, o.CredentialsProviderContext, o.StreamingCredentialsProvider}
	all, err := s.over(more)
	if err != nil {
		return nil, err
	}
	addr := o.Addr
	if addr == "" {
		addr = "localhost:6379"
	}
	if o.Network == "unix" || strings.HasPrefix(addr, "/") {
		return redisstore.Open(ctx, redisurl.OfSocket(addr, o.DB), all)
	}
	servers, err := s.url("redis", []string{addr}, o.DB)
	if err != nil {
		return nil, err
	}
	return redisstore.Open(ctx, servers, all)
}

// OpenFailover is Open for the master that the sentinels of o watch. The connections to
// sentinels have the same TLS as those to the master, as with go-redis.
func OpenFailover(ctx context.Context, o *redis.FailoverOptions, more *redisstore.Options) (*store.Store, error) {
	s := settings{o.TLSConfig, o.Dialer, o.DialTimeout, o.Username, o.Password, o.CredentialsProvider, o.CredentialsProviderContext, o.StreamingCredentialsProvider}
	all, err := s.over(more)
	if err != nil {
		return nil, err
	}
	all.Master, all.SentinelUsername, all.SentinelPassword = o.MasterName, o.SentinelUsername, o.SentinelPassword
	sentinels, err := s.url("redis-sentinel", o.SentinelAddrs, o.DB)
	if err != nil {
		return nil, err
	}
	return redisstore.Open(ctx, sentinels, all)
}

// OpenCluster is Open for a cluster, of which o names some members: see
// redisstore.Open.
func OpenCluster(ctx context.Context, o *redis.ClusterOptions, more *redisstore.Options) (*store.Store, error) {
	s := settings{o.TLSConfig, o.Dialer, o.DialTimeout, o.Username, o.Password, o.CredentialsProvider, o.CredentialsProviderContext, o.StreamingCredentialsProvider}
	all, err := s.over(more)
	if err != nil {
		return nil, err
	}
	members, err := s.url("redis-cluster", o.Addrs, 0)
	if err != nil {
		return nil, err
	}
	return redisstore.Open(ctx, members, all)
}

// settings are what all three kinds of options have.
type settings struct {
	tls                *tls.Config
	dial               func(ctx context.Context, network, addr string) (net.Conn, error)
	dialTimeout        time.Duration
	username, password string
	credentials        func() (username, password string)
	credentialsContext func(ctx context.Context) (username, password string, err error)
	streaming          auth.StreamingCredentialsProvider
}

// over returns more with the settings in s.
func (s settings) over(more *redisstore.Options) (*redisstore.Options, error) {
	if s.streaming != nil {
		return nil, fmt.Errorf("%w: a StreamingCredentialsProvider cannot be taken over: use CredentialsProviderContext", store.ErrInvalid)
	}
	all := redisstore.Options{}
	if more != nil {
		all = *more
	}
	all.Dial, all.TLS = s.dial, nil
	if s.dial == nil {
		all.TLS = s.tls
	}
	if s.dialTimeout > 0 {
		all.ConnectTimeout = s.dialTimeout
	}
	all.Username, all.Password, all.Credentials = "", "", nil
	switch { // as go-redis has it
	case s.credentialsContext != nil:
		all.Credentials = s.credentialsContext
	case s.credentials != nil:
		all.Credentials = func(context.Context) (user, password string, err error) {
			user, password = s.credentials()
			return user, password, nil
		}
	default:
		all.Username, all.Password = s.username, s.password
	}
	return &all, nil
}

// url returns the URL of servers, without secrets.
func (s settings) url(scheme string, addrs []string, db int) (string, error) {
	return redisurl.Of(scheme, s.dial == nil && s.tls != nil, addrs, db)
}
