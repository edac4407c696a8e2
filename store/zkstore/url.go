package zkstore

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

const scheme = "zookeeper"

func init() { store.Register(scheme, openURL) }

// openURL implements store.OpenFunc.
func openURL(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
	options, err := ParseURL(url)
	if err != nil {
		return nil, err
	}
	options.Logger = o.Logger
	return Open(ctx, options)
}

// ParseURL returns the options that a URL of the scheme zookeeper names:
//
//	zookeeper://USER:PASSWORD@HOST:PORT,HOST:PORT/BASE?reader=SCHEME:ID&tick=2s&max_ttl=20s
//
// USER and PASSWORD are an identity of scheme digest. Without a port, it is 2181; without
// BASE it is /leasehold. There may be several readers. ParseURL connects to nothing. Its
// errors match store.ErrInvalid and contain no password.
func ParseURL(raw string) (*Options, error) {
	raw = strings.TrimSpace(raw)
	if strings.ContainsAny(raw, "\r\n\t ") {
		return nil, fmt.Errorf("%w: an ensemble of ZooKeeper is one store: give one URL, with all its servers", store.ErrInvalid)
	}
	rest, ok := strings.CutPrefix(raw, scheme+"://")
	if !ok {
		return nil, fmt.Errorf("%w: the URL of an ensemble of ZooKeeper begins with %s://", store.ErrInvalid, scheme)
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
		return nil, fmt.Errorf("%w: the URL of an ensemble of ZooKeeper: in a password, write %%40 for @, %%2F for /, %%3F for ?, %%23 for # and %%25 for %%", store.ErrInvalid)
	}
	o := &Options{Servers: strings.Split(hosts, ","), Base: strings.TrimSuffix(u.Path, "/")}
	if identified {
		user, password, ok := strings.Cut(identity, ":")
		user, err1 := url.PathUnescape(user)
		password, err2 := url.PathUnescape(password)
		if !ok || user == "" || err1 != nil || err2 != nil {
			return nil, fmt.Errorf("%w: the part of the URL before @ is USER:PASSWORD, with %%3A for : in USER", store.ErrInvalid)
		}
		o.Auth = []Identity{{"digest", user + ":" + password}}
	}
	if err := o.parseQuery(u.Query()); err != nil {
		return nil, err
	}
	_, err = o.checked()
	return o, err
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
