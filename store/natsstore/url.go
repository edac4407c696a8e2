package natsstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/keypair"
	"github.com/leasehold-dev/leasehold/store"
)

func init() { store.Register("nats", openURL) }

func openURL(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
	servers, options, err := ParseURL(url)
	if err != nil {
		return nil, err
	}
	options.Logger = o.Logger
	return Open(ctx, servers, options)
}

// files are the files that a URL names.
type files struct{ ca, cert, key string }

// settings are what a URL can set.
var settings = map[string]func(o *Options, f *files, v string) error{
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

// ParseURL parses a URL of the scheme nats:
//
//	nats://USER:PASSWORD@HOST:PORT,HOST:PORT,HOST:PORT/BUCKET?sync=always
//	nats://HOST/BUCKET?tls=true&ca=/etc/ssl/ca.pem&creds=/etc/app/nats.creds
//
// The default port is 4222 and the default bucket "default". replicas, sync, skew and timeout
// are those of Options, and monitor has Options.Monitors, separated by commas. With tls=true, ca names a file with the certificates to trust instead
// of the system's, and cert and key those of the client, which are read at each
// connection. A URL with a user and no password takes that from NATS_PASSWORD. A URL whose
// user is empty and that has a password logs in with that as its token.
//
// ParseURL connects to nothing, but reads the files. Its errors match store.ErrInvalid and
// contain no password.
func ParseURL(raw string) (servers []string, o *Options, err error) {
	raw = strings.TrimSpace(raw)
	rest, ok := strings.CutPrefix(raw, "nats://")
	if !ok || strings.ContainsAny(raw, " \t\r\n") {
		return nil, nil, fmt.Errorf("%w: the URL of NATS has the form nats://HOST:PORT,HOST:PORT/BUCKET", store.ErrInvalid)
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
		return nil, nil, fmt.Errorf("%w: the URL of NATS cannot be read: in a password, write %%40 for @, %%3A for :, %%2F for /, %%3F for ? and %%25 for %%", store.ErrInvalid)
	}
	for h := range strings.SplitSeq(authority, ",") {
		host, port, err := net.SplitHostPort(h)
		if err != nil {
			host, port = strings.Trim(h, "[]"), "4222"
		}
		if _, err := strconv.ParseUint(port, 10, 16); host == "" || err != nil || strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return nil, nil, fmt.Errorf("%w: the hosts in the URL of NATS: write HOST:PORT,HOST:PORT, and [::1]:PORT for IPv6", store.ErrInvalid)
		}
		servers = append(servers, "nats://"+net.JoinHostPort(host, port))
	}
	o = &Options{Bucket: strings.TrimPrefix(u.Path, "/"), User: u.User.Username()}
	password, set := u.User.Password()
	switch {
	case o.User == "" && set:
		o.Token = password
	case set:
		o.Password = password
	case o.User != "":
		o.Password = os.Getenv("NATS_PASSWORD")
	}
	var f files
	for name, values := range u.Query() {
		set := settings[name]
		if set == nil {
			return nil, nil, fmt.Errorf("%w: unknown setting %q of NATS: use replicas, sync, monitor, skew, timeout, creds, tls, ca, cert, key", store.ErrInvalid, store.Excerpt(name))
		}
		if err := set(o, &f, values[0]); err != nil || len(values) > 1 {
			return nil, nil, fmt.Errorf("%w: %s=%q cannot be used: it is given once, as a time such as 60s, a number, sync=always or tls=true", store.ErrInvalid, name, store.Excerpt(values[0]))
		}
	}
	if err := f.apply(o.TLS); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", store.ErrInvalid, err)
	}
	_, err = o.checked()
	return servers, o, err
}

// apply adds the files to c.
func (f files) apply(c *tls.Config) error {
	if f == (files{}) {
		return nil
	}
	if c == nil {
		return fmt.Errorf("ca, cert and key need tls=true")
	}
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return fmt.Errorf("ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("ca: there is no certificate in %s", f.ca)
		}
	}
	if f.cert != "" || f.key != "" {
		read, err := keypair.Files(f.cert, f.key)
		if err != nil {
			return fmt.Errorf("cert and key: %w", err)
		}
		c.GetClientCertificate = read
	}
	return nil
}
