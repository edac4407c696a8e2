package config

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math"
	"net"
	"runtime"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Defaults of Options.
const (
	DefaultMaxTTL = time.Minute
	// LongestTTL is that of a store without a MaxTTL: times in scripts stay exact.
	LongestTTL            = 10 * 365 * 24 * time.Hour
	DefaultConnectTimeout = time.Second
)

// Config has the settings of a store. Its fields are those of redisstore.Options, which
// says what they mean, because it is converted from there.
type Config struct {
	MaxTTL                             time.Duration
	NodeTimeout                        time.Duration
	ConnectTimeout                     time.Duration
	Next                               []string
	FsyncAlways                        bool
	Barge                              bool
	Username, Password                 string
	Credentials                        func(ctx context.Context) (user, password string, err error)
	Master                             string
	SentinelUsername, SentinelPassword string
	TLS                                *tls.Config
	Dial                               func(ctx context.Context, network, addr string) (net.Conn, error)
	Logger                             *slog.Logger
	Clock                              clock.Clock
}

// WithDefaults fills in the defaults and validates the options. Its errors match
// store.ErrInvalid.
func (o Config) WithDefaults() (Config, error) {
	for _, d := range []struct {
		name string
		v    time.Duration
	}{{"MaxTTL", o.MaxTTL}, {"NodeTimeout", o.NodeTimeout}, {"ConnectTimeout", o.ConnectTimeout}} {
		if d.v < 0 {
			return o, Invalid(fmt.Errorf("redis: %s is %v: it must not be negative", d.name, d.v))
		}
	}
	if o.MaxTTL == 0 {
		o.MaxTTL = DefaultMaxTTL
	}
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = DefaultConnectTimeout
	}
	if o.NodeTimeout >= o.MaxTTL {
		return o, Invalid(fmt.Errorf("redis: the node timeout of %v is not below the maximum TTL of %v: waiting for one dead node would outlast a lease", o.NodeTimeout, o.MaxTTL))
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	return o, nil
}

// Quarantine is how long a server that may have forgotten leases grants nothing. It is
// longer than the longest TTL by any clock, and longer than a token can lead the clock
// that is the floor of the next token: by maxLead, and by the difference of the servers'
// clocks.
func (o Config) Quarantine() time.Duration { return QuarantineFor(o.MaxTTL) }

// QuarantineFor is Quarantine for another longest TTL.
func QuarantineFor(ttl time.Duration) time.Duration {
	if ttl > math.MaxInt64-ttl/50 {
		return math.MaxInt64
	}
	return max(ttl+ttl/50, leastQuarantine)
}

// leastQuarantine allows for clocks that are some seconds apart.
const leastQuarantine = 5 * time.Second

// TimeoutFor returns how long to wait for one of so many nodes at that TTL. If there is only one, no
// other can answer in its place: a renewal then leaves time for a second and a third one.
func (o Config) TimeoutFor(ttl time.Duration, nodes int) time.Duration {
	part := ttl / 100
	switch {
	case o.NodeTimeout > 0:
		return o.NodeTimeout
	case nodes == 1:
		part = ttl / 6
	}
	return min(max(part, 20*time.Millisecond), 500*time.Millisecond)
}

// Wall is the time of day, by the configured clock if it knows one.
func (o Config) Wall() func() time.Time {
	if c, ok := o.Clock.(clock.Simulated); ok {
		return c.Wall
	}
	return time.Now
}

// Jitter makes waiters poll at different times; see driver.Driver.Jitter. Nil means its
// default.
func (o Config) Jitter() func(time.Duration) time.Duration {
	if c, ok := o.Clock.(clock.Simulated); ok {
		return c.Jitter
	}
	return nil
}

// Rest lets other goroutines do what they are about to do. In a simulation that is
// certain, and they go on in turn.
func (o Config) Rest(turn int) {
	if c, ok := o.Clock.(clock.Simulated); ok {
		c.Rest(turn)
		return
	}
	runtime.Gosched()
}
