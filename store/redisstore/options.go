package redisstore

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"github.com/leasehold-dev/leasehold/clock"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
)

// Defaults of Options.
const (
	DefaultMaxTTL         = config.DefaultMaxTTL         // a minute
	DefaultConnectTimeout = config.DefaultConnectTimeout // a second
)

// Options configures a Store. The zero value and nil mean the defaults. A setting that is
// given both here and in a URL must have the same value in both.
type Options struct {
	// MaxTTL, if not zero, is the longest TTL that the store accepts; otherwise that is ten years. A server that has
	// lost its data stays in quarantine for as long as the longest lease may last: for
	// MaxTTL, or DefaultMaxTTL if it is zero. A client that wants a longer lease of a lock that
	// needs quarantine first raises that time on a majority of the servers. All clients
	// of the same servers should use the same value.
	MaxTTL time.Duration
	// NodeTimeout is how long the client waits for one node's answer. The default is a
	// hundredth of the requested TTL, or a sixth if the store has one node only, at least
	// 20 ms and at most 500 ms.
	NodeTimeout time.Duration
	// ConnectTimeout bounds connecting, including the TLS and Redis handshakes. The
	// default is DefaultConnectTimeout.
	ConnectTimeout time.Duration
	// Next lists the nodes that will replace those of the URLs. Until
	// redisadmin.Replace has finished, both memberships decide, each by its own majority.
	// Addresses are written as in a URL; user, password and database are those of the first
	// node.
	Next []string
	// FsyncAlways asserts that the servers append every write to a file before they
	// answer (appendonly yes, appendfsync always, no-appendfsync-on-rewrite no). It is
	// for a user that may not read these settings with CONFIG GET; settings that can be
	// read take precedence. A client that asserts this does not remove the claim of
	// durability from the mark, and it uses a server even if it may not read INFO there.
	// To skip the quarantine after a restart, clients that can read the settings are
	// needed all the same: an assertion cannot know what the settings were before.
	FsyncAlways bool
	// Barge has the waiters of this store opt out of the fair hand-off: a waiter is notified
	// when the lock is free and competes for it. A process that is running may then take the
	// lock again and again, and others may wait for long. It is slower than being handed the
	// lock. It leaves turns to other clients that poll for the same lock.
	Barge bool
	// Username and Password are used for nodes whose URL has none.
	Username, Password string
	// Credentials returns the user and the password for a connection to a server, for
	// passwords that change or come from a service. It is called for every connection,
	// so it can be called concurrently, and ctx ends after ConnectTimeout. An empty user
	// means the default user. It replaces Username and Password, which must be empty, as
	// in the URLs; the credentials of sentinels are not asked for. Nil means that the
	// URLs or Username and Password have them.
	Credentials func(ctx context.Context) (user, password string, err error)
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
}

// settings returns the options as the other packages know them: config.Config has the
// same fields, or this does not compile.
func (o *Options) settings() config.Config {
	if o == nil {
		return config.Config{}
	}
	return config.Config(*o)
}
