package etcdstore

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// Defaults of Options.
const (
	DefaultPrefix  = "leasehold"
	DefaultTimeout = 5 * time.Second
)

// MinTTL is the shortest TTL that a Store accepts: etcd counts whole seconds.
const MinTTL = time.Second

// longestLease is the longest TTL if none is set. etcd refuses leases of three times as long.
const longestLease = 100 * 365 * 24 * time.Hour

// Options configure a Store. The zero value and nil are good defaults. What is set both here
// and in the URL must have the same value in both.
type Options struct {
	// Prefix comes before the names of locks. The lock "invoices" is that of
	// concurrency.NewMutex(session, Prefix+"/invoices"). Every client of these locks
	// needs the same. Empty means DefaultPrefix.
	Prefix string
	// MaxTTL is the longest TTL that the store accepts. Zero means a century. If the data of the
	// cluster was replaced, the store grants nothing for MaxTTL, a minute if that is zero, or
	// the longest TTL above a minute that it knows to have been asked for, whichever is longest.
	MaxTTL time.Duration
	// Timeout bounds every call, except the time that Wait waits for the lock. Zero
	// means DefaultTimeout. If one member does not answer, the others are asked within
	// this time.
	Timeout time.Duration
	// Floor, if not zero, is added to all tokens, for locks that another engine kept
	// before with larger tokens. The first store that is opened with a Floor fixes it for
	// the Prefix; a store that is opened with another one fails. No store may be open for
	// the Prefix before. Tokens are whole numbers below 2^53 only if the Floor is well
	// below that.
	Floor fence.Token
	// Username and Password log in, if not empty. A user without a password has that of
	// ETCD_PASSWORD.
	Username, Password string
	// TLS is the configuration for etcds:// URLs, whose files are added to it. The default uses the
	// system's roots and TLS 1.2 or newer.
	TLS *tls.Config
	// DialOptions are passed to gRPC for every connection.
	DialOptions []grpc.DialOption
	// Logger logs members that fail, and clean-up that failed. Nil means no logging.
	Logger *slog.Logger
}

// checked returns o with its defaults.
func (o Options) checked() (Options, error) {
	c := o
	if c.MaxTTL < 0 || c.Timeout < 0 {
		return c, fmt.Errorf("%w: MaxTTL %v, Timeout %v: neither may be negative", store.ErrInvalid, c.MaxTTL, c.Timeout)
	}
	if c.MaxTTL > 0 && c.MaxTTL < MinTTL {
		return c, fmt.Errorf("%w: MaxTTL %v: the minimum is %v", store.ErrInvalid, c.MaxTTL, MinTTL)
	}
	if c.Floor >= 1<<53 {
		return c, fmt.Errorf("%w: Floor %v: it has to be below 2^53", store.ErrInvalid, c.Floor)
	}
	if c.Password != "" && c.Username == "" {
		return c, fmt.Errorf("%w: there is a password, but no user", store.ErrInvalid)
	}
	c.Prefix = strings.TrimSuffix(cmp.Or(c.Prefix, DefaultPrefix), "/")
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c, nil
}

// logsIn reports whether the store may be a user of etcd: by its password, or by the name in its
// certificate.
func (o Options) logsIn() bool {
	return o.Username != "" || o.TLS != nil && (len(o.TLS.Certificates) > 0 || o.TLS.GetClientCertificate != nil)
}

// Use is what a user of etcd does with locks. Every user may look at them.
type Use struct {
	// Names is what the names of the locks begin with.
	Names string
	// Lock is set if the user takes locks, and Examine if it calls Examine.
	Lock, Examine bool
}

// Right is an etcd permission.
type Right struct {
	// Key is a key, or what keys begin with if Prefix is set.
	Key    string
	Prefix bool
	// Write is set if the keys are also written, and not only read.
	Write bool
}

// Rights returns the least rights for the use of the store that a URL and options name, as for
// Open. The error matches store.ErrInvalid.
func (u Use) Rights(url string, o *Options) ([]Right, error) {
	_, c, err := parseURL(url, o)
	if err != nil {
		return nil, err
	}
	l := layout{c.Prefix}
	rights := []Right{{Key: l.locks(u.Names), Prefix: true, Write: u.Lock}}
	if u.Examine && !(u.Lock && u.Names == "") {
		rights = append(rights, Right{Key: l.locks(examined), Prefix: true, Write: true})
	}
	if u.Names == "" { // the keys below also begin so
		return rights, nil
	}
	for _, keys := range []string{l.allSlots(), l.broken()} {
		rights = append(rights, Right{Key: keys + escape(u.Names), Prefix: true, Write: u.Lock})
	}
	if u.Examine { // a request for a lock looks for what refuses it
		rights = append(rights, Right{Key: l.broken() + examined, Prefix: true})
	}
	if u.Lock {
		rights = append(rights, Right{Key: l.inboxes(), Prefix: true, Write: true})
	}
	return append(rights, Right{Key: l.floor(), Write: u.Lock && c.Floor != 0}, Right{Key: l.longest(), Write: u.Lock}), nil
}
