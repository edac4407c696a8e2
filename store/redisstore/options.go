package redisstore

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Defaults of Options.
const (
	DefaultMaxTTL         = time.Minute
	DefaultConnectTimeout = time.Second
)

// Options configures a Store. The zero value and nil mean the defaults. A setting that is
// given both here and in a URL must have the same value in both.
type Options struct {
	// MaxTTL is the longest TTL the store accepts. The default is DefaultMaxTTL. All
	// clients of the same servers should use the same value: a server that has lost its
	// data stays in quarantine for that long.
	MaxTTL time.Duration
	// NodeTimeout is how long the client waits for one node's answer. The default is a
	// hundredth of the requested TTL, at least 20 ms and at most 500 ms.
	NodeTimeout time.Duration
	// ConnectTimeout bounds connecting, including the TLS and Redis handshakes. The
	// default is DefaultConnectTimeout.
	ConnectTimeout time.Duration
	// Next lists the nodes that will replace those of the URLs. Until Replace has
	// finished, both memberships decide, each by its own majority. Addresses are written
	// as in a URL; user, password and database are those of the first node.
	Next []string
	// FsyncAlways asserts that the servers append every write to a file before they
	// answer (appendonly yes, appendfsync always, no-appendfsync-on-rewrite no). It is
	// for a user that may not read these settings with CONFIG GET; settings that can be
	// read take precedence. A client that asserts this does not remove the claim of
	// durability from the mark, and it uses a server even if it may not read INFO there.
	// To skip the quarantine after a restart, clients that can read the settings are
	// needed all the same: an assertion cannot know what the settings were before.
	FsyncAlways bool
	// Username and Password are used for nodes whose URL has none.
	Username, Password string
	// Master is the sentinels' name of the master, which is master= in a
	// redis-sentinel:// URL. SentinelUsername and SentinelPassword authenticate to the
	// sentinels; all other options are about the master.
	Master                             string
	SentinelUsername, SentinelPassword string
	// TLS is the configuration for rediss:// and rediss-sentinel:// URLs. The default
	// uses the system's roots and TLS 1.2 or newer.
	TLS *tls.Config
	// Dial opens the connections to servers, sentinels and cluster members, for
	// example through a tunnel. TLS is laid over what it returns if the URL asks for
	// it. Its context ends after ConnectTimeout. The connections must support
	// deadlines, and Close must end a Read or Write that is under way. Nil means a
	// net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Logger receives what an operator should know, such as nodes that fail and recover.
	// Nil disables logging.
	Logger *slog.Logger
	// Clock measures node timeouts and validity. Nil means the system's monotonic clock.
	Clock clock.Clock

	declares bool // it is opened to end quarantines, which then are no news
}

// withDefaults fills in the defaults and validates the options.
func (o Options) withDefaults() (Options, error) {
	for _, d := range []struct {
		name string
		v    time.Duration
	}{{"MaxTTL", o.MaxTTL}, {"NodeTimeout", o.NodeTimeout}, {"ConnectTimeout", o.ConnectTimeout}} {
		if d.v < 0 {
			return o, fmt.Errorf("redis: %s is %v: it must not be negative", d.name, d.v)
		}
	}
	if o.MaxTTL == 0 {
		o.MaxTTL = DefaultMaxTTL
	}
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = DefaultConnectTimeout
	}
	if o.NodeTimeout >= o.MaxTTL {
		return o, fmt.Errorf("redis: the node timeout of %v is not below the maximum TTL of %v: waiting for one dead node would outlast a lease", o.NodeTimeout, o.MaxTTL)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return o, nil
}

// quarantine is how long a server that may have forgotten leases grants nothing. It is
// longer than the longest TTL by any clock, and longer than a token can lead the clock
// that is the floor of the next token: by maxLead, and by the difference of the servers'
// clocks.
func (o Options) quarantine() time.Duration {
	return max(o.MaxTTL+o.MaxTTL/50, leastQuarantine)
}

// leastQuarantine allows for clocks that are some seconds apart.
const leastQuarantine = 5 * time.Second

// nodeTimeout returns how long to wait for a node at that TTL.
func (o Options) nodeTimeout(ttl time.Duration) time.Duration {
	if o.NodeTimeout > 0 {
		return o.NodeTimeout
	}
	return min(max(ttl/100, 20*time.Millisecond), 500*time.Millisecond)
}

// wall is the time of day, by the options' clock if it knows one.
func (o Options) wall() func() time.Time {
	if c, ok := o.Clock.(clock.Simulated); ok {
		return c.Wall
	}
	return time.Now
}

// jitter makes waiters poll at different times, as majority.Keeper.Jitter; nil is its default.
func (o Options) jitter() func(time.Duration) time.Duration {
	if c, ok := o.Clock.(clock.Simulated); ok {
		return c.Jitter
	}
	return nil
}

// rest lets other goroutines do what they are about to do. In a simulation that is
// certain, and they go on in turn.
func (o Options) rest(turn int) {
	if c, ok := o.Clock.(clock.Simulated); ok {
		c.Rest(turn)
		return
	}
	runtime.Gosched()
}
