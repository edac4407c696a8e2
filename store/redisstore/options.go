package redisstore

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Defaults of Options.
const (
	DefaultMaxTTL         = time.Minute
	DefaultConnectTimeout = time.Second
)

// Options configure a Store. The zero value, and nil, are good defaults. What
// a URL sets as well must be the same in both.
type Options struct {
	// MaxTTL is the longest TTL the store accepts. Default DefaultMaxTTL. It
	// should be the same for all clients of the same servers: it is how long a
	// server that lost its data has to stay out before it is safe again.
	MaxTTL time.Duration
	// NodeTimeout is how long one node's answer is waited for. Default: a
	// hundredth of the TTL asked for, at least 20 ms and at most 500 ms.
	NodeTimeout time.Duration
	// ConnectTimeout bounds connecting, the handshake and TLS included.
	// Default DefaultConnectTimeout.
	ConnectTimeout time.Duration
	// Next are the nodes that are to replace those of the URLs: both lists
	// decide then, each by its majority, until Replace has shut out clients that
	// know only the first. Addresses as in a URL; user, password and database
	// are those of the first node.
	Next []string
	// FsyncAlways asserts that the servers append every write to a file before
	// they answer it (appendonly yes, appendfsync always, no-appendfsync-on-rewrite
	// no), for a user who may not read that with CONFIG GET; what is read counts for
	// more. Such a client leaves it in the mark if others have seen it, and uses a
	// server of which it may not read INFO either. That a restart calls for no
	// quarantine takes clients that can read the settings: an assertion cannot know
	// what they were before.
	FsyncAlways bool
	// Username and Password for nodes whose URL has none.
	Username, Password string
	// Master is what the sentinels call the servers that keep the locks, master= in
	// a redis-sentinel:// URL. SentinelUsername and SentinelPassword are for
	// sentinels that ask for a password themselves; all else is about the master.
	Master                             string
	SentinelUsername, SentinelPassword string
	// TLS for rediss:// and rediss-sentinel:// URLs. Default: the system's roots, TLS 1.2 or newer.
	TLS *tls.Config
	// Logger is told what an operator should know: an even number of nodes,
	// nodes that come and go. Nil: nothing is logged.
	Logger *slog.Logger
	// Clock measures node timeouts and validity. Nil: the machine's own.
	Clock clock.Clock

	declares bool // it is opened to end quarantines, which then are no news
}

// settle fills in defaults and says what is wrong.
func (o Options) settle() (Options, error) {
	for _, d := range []struct {
		name string
		v    time.Duration
	}{{"MaxTTL", o.MaxTTL}, {"NodeTimeout", o.NodeTimeout}, {"ConnectTimeout", o.ConnectTimeout}} {
		if d.v < 0 {
			return o, fmt.Errorf("redis: %s is %v: it can not be negative", d.name, d.v)
		}
	}
	if o.MaxTTL == 0 {
		o.MaxTTL = DefaultMaxTTL
	}
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = DefaultConnectTimeout
	}
	if o.NodeTimeout >= o.MaxTTL {
		return o, fmt.Errorf("redis: a node timeout of %v is not below the maximum TTL of %v: waiting for one dead node would use up a lease", o.NodeTimeout, o.MaxTTL)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return o, nil
}

// quarantine is how long a server that may have forgotten leases grants
// nothing: the longest TTL, by any clock; and longer than a token can be ahead
// of the clock that is the floor of the next one, which is maxLead and what the
// clocks of the servers differ by.
func (o Options) quarantine() time.Duration {
	return max(o.MaxTTL+o.MaxTTL/50, leastQuarantine)
}

// leastQuarantine allows for clocks that are some seconds apart.
const leastQuarantine = 5 * time.Second

// nodeTimeout for a request with that TTL.
func (o Options) nodeTimeout(ttl time.Duration) time.Duration {
	if o.NodeTimeout > 0 {
		return o.NodeTimeout
	}
	return min(max(ttl/100, 20*time.Millisecond), 500*time.Millisecond)
}
