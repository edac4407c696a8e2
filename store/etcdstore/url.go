package etcdstore

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/keypair"
	"github.com/leasehold-dev/leasehold/internal/settings"
	"github.com/leasehold-dev/leasehold/store"
)

func init() {
	for _, scheme := range []string{"etcd", "etcds"} {
		store.Register(scheme, func(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
			return Open(ctx, url, &Options{Logger: o.Logger})
		})
	}
}

// urlSettings are what a URL can set.
var urlSettings = map[string]func(o *Options, files *tlsFiles, v string) error{
	"max_ttl": func(o *Options, _ *tlsFiles, v string) error { return parseTime(&o.MaxTTL, v) },
	"timeout": func(o *Options, _ *tlsFiles, v string) error { return parseTime(&o.Timeout, v) },
	"floor": func(o *Options, _ *tlsFiles, v string) error {
		n, err := strconv.ParseUint(v, 10, 64)
		o.Floor = fence.Token(n)
		return err
	},
	"ca":   func(_ *Options, f *tlsFiles, v string) error { f.ca = v; return nil },
	"cert": func(_ *Options, f *tlsFiles, v string) error { f.cert = v; return nil },
	"key":  func(_ *Options, f *tlsFiles, v string) error { f.key = v; return nil },
}

type tlsFiles struct{ ca, cert, key string }

func parseTime(into *time.Duration, v string) (err error) {
	if *into, err = time.ParseDuration(v); err == nil && *into <= 0 {
		err = fmt.Errorf("it is not positive")
	}
	return err
}

// parseURL returns the endpoints that a URL names, and the options with what it sets. It
// connects to nothing, but reads the files. Its errors match store.ErrInvalid and contain no
// password.
func parseURL(raw string, given *Options) (endpoints []string, o Options, err error) {
	raw = strings.TrimSpace(raw)
	scheme, rest, _ := strings.Cut(raw, "://")
	if scheme != "etcd" && scheme != "etcds" || strings.ContainsAny(raw, " \t\r\n") {
		return nil, o, fmt.Errorf("%w: the URL of etcd has the form etcd://HOST:PORT,HOST:PORT/PREFIX, and names all members", store.ErrInvalid)
	}
	// net/url does not know lists of hosts.
	at := strings.IndexAny(rest, "/?#")
	if at < 0 {
		at = len(rest)
	}
	authority, tail := rest[:at], rest[at:]
	login := ""
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		login, authority = authority[:i+1], authority[i+1:]
	}
	u, err := url.Parse(scheme + "://" + login + "host" + tail)
	if err != nil || u.Fragment != "" || strings.ContainsAny(rest[:at], "#") {
		return nil, o, fmt.Errorf("%w: the URL of etcd cannot be read: in a password, write %%40 for @, %%3A for :, %%2F for /, %%3F for ? and %%25 for %%", store.ErrInvalid)
	}
	if endpoints, err = hosts(authority); err != nil {
		return nil, o, err
	}
	says := Options{Prefix: strings.TrimPrefix(u.Path, "/"), Username: u.User.Username()}
	says.Password, _ = u.User.Password()
	var files tlsFiles
	for name, values := range u.Query() {
		set := urlSettings[name]
		if set == nil {
			return nil, o, fmt.Errorf("%w: unknown setting %q of etcd: use max_ttl, timeout, floor, ca, cert, key", store.ErrInvalid, store.Excerpt(name))
		}
		if err := set(&says, &files, values[0]); err != nil || len(values) > 1 {
			return nil, o, fmt.Errorf("%w: %s=%q cannot be used: it is given once, as a time such as 60s or a number", store.ErrInvalid, name, store.Excerpt(values[0]))
		}
	}
	if o, err = settings.Join(given, says); err != nil {
		return nil, o, err
	}
	if o.Password == "" && o.Username != "" {
		o.Password = os.Getenv("ETCD_PASSWORD")
	}
	if scheme == "etcds" {
		if o.TLS, err = keypair.Config(o.TLS, files.ca, files.cert, files.key); err != nil {
			return nil, o, fmt.Errorf("%w: %w", store.ErrInvalid, err)
		}
	} else if files != (tlsFiles{}) || o.TLS != nil {
		return nil, o, fmt.Errorf("%w: ca, cert, key and Options.TLS are for etcds://", store.ErrInvalid)
	}
	o, err = o.checked()
	return endpoints, o, err
}

// hosts returns the endpoints of a list of hosts.
func hosts(list string) (endpoints []string, err error) {
	for _, h := range strings.Split(list, ",") {
		host, port, err := net.SplitHostPort(h)
		if err != nil {
			host, port = strings.Trim(h, "[]"), "2379"
		}
		if _, err := strconv.ParseUint(port, 10, 16); host == "" || err != nil || strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return nil, fmt.Errorf("%w: the hosts in the URL of etcd: write HOST:PORT,HOST:PORT, and [::1]:PORT for IPv6; in a password, write %%2F for /", store.ErrInvalid)
		}
		endpoints = append(endpoints, net.JoinHostPort(host, port))
	}
	return endpoints, nil
}
