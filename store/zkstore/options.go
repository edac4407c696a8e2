package zkstore

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/settings"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// Defaults of Options.
const (
	DefaultBase    = "/leasehold"
	DefaultTimeout = 5 * time.Second
	defaultPort    = "2181"
)

// Options configure a Store. The zero value and nil are good defaults. What is set both here
// and in the URL must have the same value in both.
type Options struct {
	// Base is the node below which locks are kept. Empty means DefaultBase. It is created
	// if it is missing and the identity may do so.
	Base string
	// Auth are the identities to authenticate with, in most cases one of scheme "digest"
	// with the ID "user:password".
	Auth []Identity
	// Readers may look at locks, and not change them. The scheme and the ID are those of
	// ZooKeeper's ACLs, such as "world" and "anyone", or "digest" and "user:hash".
	Readers []Identity
	// Tick is the servers' tickTime. Zero means half of the shortest session that they
	// grant, which is right unless minSessionTimeout is set in their configuration. It
	// must not be less than their tickTime.
	Tick time.Duration
	// MaxTTL is the longest TTL that the store accepts. Zero means the longest that the
	// servers' maxSessionTimeout allows.
	MaxTTL time.Duration
	// Timeout bounds every call, except the time that Wait waits for the lock. Zero means
	// DefaultTimeout.
	Timeout time.Duration
	// Logger logs clean-up that failed. Nil means no logging.
	Logger *slog.Logger

	servers []string                         // from the URL
	shuffle func(n int, swap func(i, j int)) // in tests, another order of the servers
}

// Identity is an identity of one of ZooKeeper's authentication schemes.
type Identity struct{ Scheme, ID string }

// checked returns o with its defaults.
func (o *Options) checked() (Options, error) {
	c := *cmp.Or(o, &Options{})
	c.servers = slices.Clone(c.servers)
	for i, a := range c.servers {
		addr, err := address(a)
		if err != nil {
			return c, err
		}
		c.servers[i] = addr
	}
	if len(c.servers) == 0 {
		return c, fmt.Errorf("%w: no ZooKeeper server is named", store.ErrInvalid)
	}
	c.Base = cmp.Or(c.Base, DefaultBase)
	if err := checkBase(c.Base); err != nil {
		return c, err
	}
	if c.MaxTTL < 0 || c.Timeout < 0 || c.Tick < 0 {
		return c, fmt.Errorf("%w: MaxTTL %v, Timeout %v, Tick %v: none may be negative", store.ErrInvalid, c.MaxTTL, c.Timeout, c.Tick)
	}
	for _, i := range slices.Concat(c.Auth, c.Readers) {
		if i.Scheme == "" {
			return c, fmt.Errorf("%w: an identity has no scheme: name one, such as digest", store.ErrInvalid)
		}
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c, nil
}

// shuffled returns the servers in the order in which a store connects to them. All stores
// in one order would have the first server serve them all.
func (o *Options) shuffled() []string {
	servers := slices.Clone(o.servers)
	shuffle := o.shuffle
	if shuffle == nil {
		shuffle = rand.Shuffle
	}
	shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
	return servers
}

// address returns a with the default port if it has none.
func address(a string) (string, error) {
	host, port, err := net.SplitHostPort(a)
	if err != nil {
		host, port = strings.Trim(a, "[]"), defaultPort
	}
	if host == "" || port == "" || strings.ContainsAny(host, "/@? \t") {
		return "", fmt.Errorf("%w: the address %q of a ZooKeeper server: it is host or host:port", store.ErrInvalid, store.Excerpt(a))
	}
	return net.JoinHostPort(host, port), nil
}

// checkBase returns an error unless base can be a node's path.
func checkBase(base string) error {
	for i, part := range strings.Split(base, "/") {
		if i == 0 && part == "" {
			continue
		}
		if i == 0 || part == "" || part == "." || part == ".." || strings.ContainsFunc(part, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return fmt.Errorf("%w: the node %q: it is a path such as %s, of printable ASCII characters", store.ErrInvalid, store.Excerpt(base), DefaultBase)
		}
	}
	return nil
}

// acl returns the rights of the nodes that the store makes.
func (o *Options) acl() []zk.ACL {
	acl := []zk.ACL{{Perms: zk.PermAll, Scheme: "world", ID: "anyone"}}
	if len(o.Auth) > 0 {
		acl[0] = zk.ACL{Perms: zk.PermAll, Scheme: "auth"}
	}
	for _, r := range o.Readers {
		acl = append(acl, zk.ACL{Perms: zk.PermRead, Scheme: r.Scheme, ID: r.ID})
	}
	return acl
}

const scheme = "zookeeper"

func init() {
	store.Register(scheme, func(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
		return Open(ctx, url, &Options{Logger: o.Logger})
	})
}

// Access says who may do what with the nodes of a store. An administrator who makes Base has to
// see to it; what a store makes has these rights by itself.
type Access struct {
	Base string
	// Auth and Readers are those of Options.
	Auth, Readers []Identity
}

// AccessOf returns the access to the store that a URL and options name, as for Open. It connects
// to nothing. The error matches store.ErrInvalid and contains no password.
func AccessOf(url string, o *Options) (Access, error) {
	c, err := parseURL(url, o)
	return Access{c.Base, c.Auth, c.Readers}, err
}

// parseURL returns the options with what a URL sets. It connects to nothing. Its errors match
// store.ErrInvalid and contain no password.
func parseURL(raw string, given *Options) (o Options, err error) {
	raw = strings.TrimSpace(raw)
	if strings.ContainsAny(raw, "\r\n\t ") {
		return o, fmt.Errorf("%w: an ensemble of ZooKeeper is one store: give one URL, with all its servers", store.ErrInvalid)
	}
	rest, ok := strings.CutPrefix(raw, scheme+"://")
	if !ok {
		return o, fmt.Errorf("%w: the URL of an ensemble of ZooKeeper begins with %s://", store.ErrInvalid, scheme)
	}
	// url.Parse knows no list of hosts with ports.
	at := strings.IndexAny(rest, "/?#")
	if at < 0 {
		at = len(rest)
	}
	authority, rest := rest[:at], rest[at:]
	last := strings.LastIndexByte(authority, '@')
	hosts := authority[last+1:]
	u, err := url.Parse(scheme + "://h" + rest)
	if err != nil || u.Fragment != "" {
		return o, fmt.Errorf("%w: the URL of an ensemble of ZooKeeper: in a password, write %%40 for @, %%2F for /, %%3F for ?, %%23 for # and %%25 for %%", store.ErrInvalid)
	}
	says := Options{Base: strings.TrimSuffix(u.Path, "/")}
	if last >= 0 {
		user, password, ok := strings.Cut(authority[:last], ":")
		user, err1 := url.PathUnescape(user)
		password, err2 := url.PathUnescape(password)
		if !ok || user == "" || err1 != nil || err2 != nil {
			return o, fmt.Errorf("%w: the part of the URL before @ is USER:PASSWORD, with %%3A for : in USER", store.ErrInvalid)
		}
		says.Auth = []Identity{{"digest", user + ":" + password}}
	}
	if err := says.parseQuery(u.Query()); err != nil {
		return o, err
	}
	if o, err = settings.Join(given, says); err != nil {
		return o, err
	}
	o.servers = strings.Split(hosts, ",")
	return o.checked()
}

func (o *Options) parseQuery(q url.Values) error {
	for key, values := range q {
		for _, v := range values {
			var err error
			switch key {
			case "reader":
				s, id, ok := strings.Cut(v, ":")
				if !ok || s == "" || id == "" {
					return fmt.Errorf("%w: reader=%q: it is SCHEME:ID, such as world:anyone", store.ErrInvalid, store.Excerpt(v))
				}
				o.Readers = append(o.Readers, Identity{s, id})
			case "tick":
				o.Tick, err = time.ParseDuration(v)
			case "max_ttl":
				o.MaxTTL, err = time.ParseDuration(v)
			default:
				return fmt.Errorf("%w: unknown setting %q of zookeeper: use reader, tick, max_ttl", store.ErrInvalid, store.Excerpt(key))
			}
			if err != nil || o.Tick < 0 || o.MaxTTL < 0 {
				return fmt.Errorf("%w: %s=%q: it is a time such as 2s", store.ErrInvalid, key, store.Excerpt(v))
			}
		}
	}
	return nil
}
