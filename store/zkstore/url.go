package zkstore

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/settings"
	"github.com/leasehold-dev/leasehold/store"
)

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
	identity, hosts, identified := cutLast(authority, "@")
	u, err := url.Parse(scheme + "://h" + rest)
	if err != nil || u.Fragment != "" {
		return o, fmt.Errorf("%w: the URL of an ensemble of ZooKeeper: in a password, write %%40 for @, %%2F for /, %%3F for ?, %%23 for # and %%25 for %%", store.ErrInvalid)
	}
	says := Options{Base: strings.TrimSuffix(u.Path, "/")}
	if identified {
		user, password, ok := strings.Cut(identity, ":")
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

// cutLast is strings.Cut at the last separator: before it, and after it or all.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
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
