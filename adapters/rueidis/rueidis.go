// Package rueidis opens stores with the options of a rueidis client, so that a program
// configures Redis once. The store has connections of its own.
package rueidis

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/redis/rueidis"

	"github.com/leasehold-dev/leasehold/adapters/internal/redisurl"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// Open opens a store on the server of o, or on the master that the sentinels of o watch if
// o.Sentinel.MasterSet is set: see redisstore.Open. It takes over the address, the
// database, TLS, the credentials, the dialer and its timeout; these win over the same
// settings in more, which has the rest. A nil more means the defaults. A DialCtxFn or
// DialFn is used as rueidis uses it: it makes TLS connections itself. Sentinels are dialed
// as the master is, with o.Dialer and o.TLSConfig: those of o.Sentinel are not taken over.
// An address that begins with a slash is a unix socket, as in rueidis.ParseURL.
//
// AuthCredentialsFn is asked for each connection to a master, with the first address of o,
// whatever server the connection is to. Sentinels get the credentials of o.Sentinel.
// RefreshAfter is ignored: connections that were let in stay.
//
// The error matches store.ErrInvalid if o names several servers without sentinels: use
// OpenCluster, or redisstore.Open for independent servers. It does so too if o has TLS for
// the master and not for the sentinels, or the other way round.
func Open(ctx context.Context, o rueidis.ClientOption, more *redisstore.Options) (*store.Store, error) {
	all := over(o, more)
	if o.Sentinel.MasterSet != "" {
		if (o.TLSConfig == nil) != (o.Sentinel.TLSConfig == nil) {
			return nil, fmt.Errorf("%w: the options have TLS for the master or for the sentinels, and not for both", store.ErrInvalid)
		}
		all.Master, all.SentinelUsername, all.SentinelPassword = o.Sentinel.MasterSet, o.Sentinel.Username, o.Sentinel.Password
		sentinels, err := url("redis-sentinel", o)
		if err != nil {
			return nil, err
		}
		return redisstore.Open(ctx, sentinels, all)
	}
	if n := len(o.InitAddress); n != 1 {
		return nil, fmt.Errorf("%w: the options name %d servers, not one: use OpenCluster for a cluster", store.ErrInvalid, n)
	}
	if path := o.InitAddress[0]; strings.HasPrefix(path, "/") { // as rueidis.ParseURL has a unix socket
		return redisstore.Open(ctx, redisurl.OfSocket(path, o.SelectDB), all)
	}
	server, err := url("redis", o)
	if err != nil {
		return nil, err
	}
	return redisstore.Open(ctx, server, all)
}

// OpenCluster is Open for a cluster, of which o names some members: see
// redisstore.Open.
func OpenCluster(ctx context.Context, o rueidis.ClientOption, more *redisstore.Options) (*store.Store, error) {
	members, err := url("redis-cluster", o)
	if err != nil {
		return nil, err
	}
	return redisstore.Open(ctx, members, over(o, more))
}

// over returns more with the settings of o.
func over(o rueidis.ClientOption, more *redisstore.Options) *redisstore.Options {
	all := redisstore.Options{}
	if more != nil {
		all = *more
	}
	all.TLS, all.Dial = o.TLSConfig, o.Dialer.DialContext
	switch {
	case o.DialCtxFn != nil:
		all.TLS, all.Dial = nil, func(ctx context.Context, _, addr string) (net.Conn, error) {
			return o.DialCtxFn(ctx, addr, &o.Dialer, o.TLSConfig)
		}
	case o.DialFn != nil:
		all.TLS, all.Dial = nil, func(_ context.Context, _, addr string) (net.Conn, error) {
			return o.DialFn(addr, &o.Dialer, o.TLSConfig)
		}
	}
	if o.Dialer.Timeout > 0 {
		all.ConnectTimeout = o.Dialer.Timeout
	}
	all.Username, all.Password, all.Credentials = o.Username, o.Password, nil
	if ask := o.AuthCredentialsFn; ask != nil && len(o.InitAddress) > 0 {
		all.Username, all.Password = "", ""
		all.Credentials = func(context.Context) (user, password string, err error) {
			c, err := ask(rueidis.AuthCredentialsContext{Address: address(o.InitAddress[0])})
			return c.Username, c.Password, err
		}
	}
	return &all
}

// address is a net.Addr.
type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// url returns the URL of the servers of o, without secrets. A function of the user's that
// makes the connections makes those with TLS, too.
func url(scheme string, o rueidis.ClientOption) (string, error) {
	return redisurl.Of(scheme, o.TLSConfig != nil && o.DialCtxFn == nil && o.DialFn == nil, o.InitAddress, o.SelectDB)
}
