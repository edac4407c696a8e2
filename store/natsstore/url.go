package natsstore

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/keypair"
	"github.com/leasehold-dev/leasehold/internal/settings"
	"github.com/leasehold-dev/leasehold/store"
)

func init() {
	store.Register("nats", func(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
		return Open(ctx, url, &Options{Logger: o.Logger})
	})
}

// files are the files that a URL names.
type files struct{ ca, cert, key string }

// urlSettings are what a URL can set.
var urlSettings = map[string]func(o *Options, f *files, v string) error{
	"replicas": func(o *Options, _ *files, v string) (err error) { o.Replicas, err = strconv.Atoi(v); return err },
	"sync": func(o *Options, _ *files, v string) error {
		if o.Synced = v == "always"; !o.Synced {
			return fmt.Errorf("it can only be always")
		}
		return nil
	},
	"monitor": func(o *Options, _ *files, v string) error { o.Monitors = strings.Split(v, ","); return nil },
	"skew":    func(o *Options, _ *files, v string) (err error) { o.Skew, err = time.ParseDuration(v); return err },
	"timeout": func(o *Options, _ *files, v string) (err error) { o.Timeout, err = time.ParseDuration(v); return err },
	"creds":   func(o *Options, _ *files, v string) error { o.CredentialsFile = v; return nil },
	"tls": func(o *Options, _ *files, v string) error {
		if v != "true" {
			return fmt.Errorf("it can only be true")
		}
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		return nil
	},
	"ca":   func(_ *Options, f *files, v string) error { f.ca = v; return nil },
	"cert": func(_ *Options, f *files, v string) error { f.cert = v; return nil },
	"key":  func(_ *Options, f *files, v string) error { f.key = v; return nil },
}

// parseURL returns the servers that a URL names, and the options with what it sets. It connects to
// nothing, but reads the files. Its errors match store.ErrInvalid and contain no password.
func parseURL(raw string, given *Options) (servers []string, o Options, err error) {
	raw = strings.TrimSpace(raw)
	rest, ok := strings.CutPrefix(raw, "nats://")
	if !ok || strings.ContainsAny(raw, " \t\r\n") {
		return nil, o, fmt.Errorf("%w: the URL of NATS has the form nats://HOST:PORT,HOST:PORT/BUCKET", store.ErrInvalid)
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
	u, err := url.Parse("nats://" + login + "host" + tail)
	if err != nil || u.Fragment != "" {
		return nil, o, fmt.Errorf("%w: the URL of NATS cannot be read: in a password, write %%40 for @, %%3A for :, %%2F for /, %%3F for ? and %%25 for %%", store.ErrInvalid)
	}
	for h := range strings.SplitSeq(authority, ",") {
		host, port, err := net.SplitHostPort(h)
		if err != nil {
			host, port = strings.Trim(h, "[]"), "4222"
		}
		if _, err := strconv.ParseUint(port, 10, 16); host == "" || err != nil || strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return nil, o, fmt.Errorf("%w: the hosts in the URL of NATS: write HOST:PORT,HOST:PORT, and [::1]:PORT for IPv6", store.ErrInvalid)
		}
		servers = append(servers, "nats://"+net.JoinHostPort(host, port))
	}
	says := Options{Bucket: strings.TrimPrefix(u.Path, "/"), User: u.User.Username()}
	if password, set := u.User.Password(); set && says.User == "" {
		says.Token = password
	} else {
		says.Password = password
	}
	var f files
	for name, values := range u.Query() {
		set := urlSettings[name]
		if set == nil {
			return nil, o, fmt.Errorf("%w: unknown setting %q of NATS: use replicas, sync, monitor, skew, timeout, creds, tls, ca, cert, key", store.ErrInvalid, store.Excerpt(name))
		}
		if err := set(&says, &f, values[0]); err != nil || len(values) > 1 {
			return nil, o, fmt.Errorf("%w: %s=%q cannot be used: it is given once, as a time such as 60s, a number, sync=always or tls=true", store.ErrInvalid, name, store.Excerpt(values[0]))
		}
	}
	secure := says.TLS != nil
	says.TLS = nil // it is a switch, and o.TLS the rest
	if o, err = settings.Join(given, says); err != nil {
		return nil, o, err
	}
	if o.Password == "" && o.User != "" {
		o.Password = os.Getenv("NATS_PASSWORD")
	}
	if o.TLS, err = f.config(secure, o.TLS); err != nil {
		return nil, o, fmt.Errorf("%w: %w", store.ErrInvalid, err)
	}
	o, err = o.checked()
	return servers, o, err
}

// config returns a copy of base with the files, or nil if there is no base and the URL does
// not ask for TLS.
func (f files) config(asked bool, base *tls.Config) (*tls.Config, error) {
	if base == nil && !asked {
		if f != (files{}) {
			return nil, fmt.Errorf("ca, cert and key need tls=true")
		}
		return nil, nil
	}
	return keypair.Config(base, f.ca, f.cert, f.key)
}
