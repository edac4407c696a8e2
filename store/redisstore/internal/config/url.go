package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/keypair"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// Address is one node as the URLs name it.
type Address struct {
	Host     string // host:port, or the path of a unix socket
	Username string
	Password string
	db       int
	TLS      bool
}

// Name is the address as it stands in a membership: with the database, unless that is 0. Different
// databases of one server are different places for locks.
func (a Address) Name() string {
	if a.db == 0 {
		return a.Host
	}
	return a.Host + "/" + strconv.Itoa(a.db)
}

// Network returns the network of the address, as net.Dial names it.
func (a Address) Network() string {
	if strings.HasPrefix(a.Host, "/") {
		return "unix"
	}
	return "tcp"
}

// topology is how the servers of a URL belong together.
type topology struct {
	scheme string // of its URLs; an s at the end of the first word selects TLS
	local  string // scheme of URLs that name a unix socket; empty if there is none
	port   string // the default port
	// texts returns the settings that only this topology has.
	texts   func(*Config) map[string]*string
	without []string
}

var independent = topology{scheme: "redis", local: "unix", port: "6379"}

var topologies = []topology{independent, watched}

// topologyOf returns the topology of the first URL; all must have the same.
func topologyOf(urls []string) topology {
	for _, raw := range urls {
		if i := slices.IndexFunc(topologies, func(t topology) bool { return t.of(raw) }); i >= 0 {
			return topologies[i]
		}
	}
	return independent
}

// of reports whether a URL is one of the topology.
func (t topology) of(raw string) bool {
	scheme, _, ok := strings.Cut(raw, "://")
	return ok && slices.Contains(t.schemes(), scheme)
}

// secure returns the scheme over TLS.
func (t topology) secure() string {
	first, rest, _ := strings.Cut(t.scheme, "-")
	return strings.TrimSuffix(first+"s-"+rest, "-")
}

// schemes returns the schemes of the topology's URLs.
func (t topology) schemes() []string {
	names := []string{t.scheme, t.secure()}
	if t.local != "" {
		names = append(names, t.local)
	}
	return names
}

// Schemes returns the schemes of all URLs.
func Schemes() []string {
	return slices.Concat(independent.schemes(), watched.schemes(), clustered.schemes())
}

// Parse parses the URL of independent servers or of sentinels, or several such URLs
// separated by white space. Its errors match store.ErrInvalid.
func Parse(url string, o Config) ([]Address, Config, error) {
	if NamesCluster(url) {
		return nil, o, Invalid(fmt.Errorf("redis: %s:// does not fit here: %s", clustered.scheme, onlyIndependent))
	}
	urls := strings.Fields(url)
	addrs, o, err := topologyOf(urls).parse(urls, o)
	return addrs, o, Invalid(err)
}

// parse parses
//
//	redis://user:password@host:port,host:port,.../db?setting=value
//	rediss://...                                       (TLS)
//	unix://user:password@/path/of/a/socket?db=0&setting=value
//
// It returns the addresses, and o with the settings of the URLs applied. Several URLs
// give one set of nodes. No error contains a password.
func (t topology) parse(urls []string, o Config) ([]Address, Config, error) {
	settings := url.Values{}
	var addrs []Address
	for _, raw := range urls {
		more, query, err := t.parseURL(raw)
		if err != nil {
			return nil, o, err
		}
		addrs = append(addrs, more...)
		for k, v := range query {
			if old, ok := settings[k]; ok && !slices.Equal(old, v) || len(v) != 1 {
				return nil, o, fmt.Errorf("redis: setting %q is given twice with different values: give it once", k)
			}
			settings[k] = v
		}
	}
	switch {
	case len(addrs) == 0:
		return nil, o, errors.New("redis: no nodes: give at least one address, as in redis://127.0.0.1:6379")
	case len(addrs) > quorum.MaxNodes:
		return nil, o, fmt.Errorf("redis: %d nodes are more than the %d that are supported: five nodes tolerate the loss of two", len(addrs), quorum.MaxNodes)
	}
	for i, a := range addrs {
		if slices.ContainsFunc(addrs[:i], func(b Address) bool { return a.Host == b.Host }) {
			return nil, o, fmt.Errorf("redis: node %s is listed twice: list each server once, or its vote counts double", a.Host)
		}
		if o.Credentials != nil && (o.Username != "" || o.Password != "" || a.Username != "" || a.Password != "") {
			return nil, o, errors.New("redis: Credentials does not go with a user or a password in the URL or in the options: give one of them")
		}
		if o.Username != "" && a.Username == "" && a.Password == "" {
			addrs[i].Username = o.Username
		}
		if o.Password != "" && a.Password == "" {
			addrs[i].Password = o.Password
		}
	}
	o, err := t.applySettings(settings, slices.ContainsFunc(addrs, func(a Address) bool { return a.TLS }), o)
	if err == nil {
		err = t.check(addrs, o)
	}
	if err != nil {
		return nil, o, err
	}
	return addrs, o, nil
}

func (t topology) parseURL(raw string) ([]Address, url.Values, error) {
	scheme, rest, _ := strings.Cut(raw, "://")
	if !t.of(raw) {
		if slices.Contains(Schemes(), scheme) {
			return nil, nil, fmt.Errorf("redis: URLs of %s:// and of %s:// cannot be combined: all URLs must name servers of one store", t.scheme, scheme)
		}
		// Not echoed: what is not a URL may be a mistyped secret.
		var known []string
		for _, s := range Schemes() {
			known = append(known, s+"://")
		}
		return nil, nil, fmt.Errorf("redis: an address starts with one of %s, as in %s://127.0.0.1:%s", strings.Join(known, ", "), t.scheme, t.port)
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	if path, _, _ := strings.Cut(tail, "?"); strings.Contains(path, "@") {
		// Nothing is echoed: what looks like a host here is half a password.
		return nil, nil, errors.New("redis: the URL has a / or # before its @: escape special characters in the user name and the password (@ is %40, / is %2F, : is %3A, # is %23)")
	}
	if scheme == t.local {
		return t.parseSocket(raw)
	}
	user, hosts := "", authority
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		user, hosts = authority[:i+1], authority[i+1:]
	}
	// net/url does not accept a list of hosts, so the rest is parsed without it.
	u, err := url.Parse(scheme + "://" + user + "host" + tail)
	if err != nil || u.Fragment != "" {
		return nil, nil, fmt.Errorf("redis: the URL of %s cannot be parsed: escape special characters in the user name and the password (@ is %%40, / is %%2F, : is %%3A, # is %%23)", hosts)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, nil, fmt.Errorf("redis: the settings in the URL of %s cannot be parsed: write them like ?max_ttl=60s&node_timeout=50ms", hosts)
	}
	base := Address{Username: u.User.Username(), TLS: scheme == t.secure()}
	base.Password, _ = u.User.Password()
	if path := strings.Trim(u.Path, "/"); path != "" {
		if base.db, err = strconv.Atoi(path); err != nil || base.db < 0 {
			return nil, nil, fmt.Errorf("redis: %q in the URL of %s is not the number of a database", path, hosts)
		}
	}
	var addrs []Address
	for host := range strings.SplitSeq(hosts, ",") {
		a := base
		if a.Host, err = hostPort(host, t.port); err != nil {
			return nil, nil, err
		}
		addrs = append(addrs, a)
	}
	return addrs, query, nil
}

// SharedHost returns a host that two of the addresses have; empty if there is none.
func SharedHost(addrs []Address) string {
	seen := map[string]bool{}
	for _, a := range addrs {
		host, _, _ := net.SplitHostPort(a.Host)
		if a.Network() == "unix" {
			host = "this machine"
		}
		if seen[host] {
			return host
		}
		seen[host] = true
	}
	return ""
}

// ServerAddress returns the address of a server as in a URL, with the port.
func ServerAddress(host string) (string, error) { return hostPort(host, independent.port) }

// hostPort adds the default port to a host without one.
func hostPort(host, defaultPort string) (string, error) {
	if host == "" {
		return "", errors.New("redis: an address has no host: write addresses like redis://a:6379,b:6379")
	}
	if !strings.Contains(host, ":") || strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		return net.JoinHostPort(strings.Trim(host, "[]"), defaultPort), nil
	}
	name, port, err := net.SplitHostPort(host)
	if n, bad := strconv.Atoi(port); err != nil || bad != nil || n < 1 || n > 65535 || name == "" {
		// The text after the colon is not echoed: if the @ was forgotten, it is a
		// password.
		name, _, _ := strings.Cut(host, ":")
		return "", fmt.Errorf("redis: the address that begins with %q is not host:port (an IPv6 address is written [::1]:6379)", name)
	}
	return net.JoinHostPort(name, port), nil
}

// applySettings applies the settings of the URLs to o. The argument secure says whether
// any server is reached over TLS.
func (t topology) applySettings(settings url.Values, secure bool, o Config) (Config, error) {
	durations := map[string]*time.Duration{
		"max_ttl": &o.MaxTTL, "node_timeout": &o.NodeTimeout, "connect_timeout": &o.ConnectTimeout,
	}
	files := map[string]*string{"tls_ca": new(string), "tls_cert": new(string), "tls_key": new(string), "tls_server_name": new(string)}
	var texts map[string]*string
	if t.texts != nil {
		texts = t.texts(&o)
	}
	for k, v := range settings {
		if slices.Contains(t.without, k) {
			return o, fmt.Errorf("redis: setting %q in the URL does not go with %s://: %s", k, t.scheme, onlyIndependent)
		} else if text, ok := texts[k]; ok {
			if *text != "" && *text != v[0] { // not shown: it may be a password
				return o, fmt.Errorf("redis: %s in the URL contradicts the options", k)
			}
			*text = v[0]
		} else if d, ok := durations[k]; ok {
			value, err := time.ParseDuration(v[0])
			if err != nil || value <= 0 {
				return o, fmt.Errorf("redis: setting %s=%q is not a duration such as 60s or 50ms", k, v[0])
			}
			if *d != 0 && *d != value {
				return o, fmt.Errorf("redis: %s is %v in the URL and %v in the options", k, value, *d)
			}
			*d = value
		} else if f, ok := files[k]; ok {
			*f = v[0]
		} else if k == "fsync" {
			if v[0] != "always" {
				return o, fmt.Errorf("redis: setting fsync=%q: the only value is always, for servers that append every write before they answer", v[0])
			}
			o.FsyncAlways = true
		} else if k == "barge" {
			if v[0] != "true" {
				return o, fmt.Errorf("redis: setting barge=%q: the only value is true, for waiters that compete for a free lock instead of being handed it", v[0])
			}
			o.Barge = true
		} else if k == "next" {
			next := strings.Split(v[0], ",")
			if o.Next != nil && !slices.Equal(o.Next, next) {
				return o, fmt.Errorf("redis: next is %s in the URL and %s in the options", v[0], strings.Join(o.Next, ","))
			}
			o.Next = next
		} else {
			known := append([]string{"barge", "connect_timeout", "fsync", "max_ttl", "next", "node_timeout", "tls_ca", "tls_cert", "tls_key", "tls_server_name"}, slices.Collect(maps.Keys(texts))...)
			known = slices.DeleteFunc(known, func(k string) bool { return slices.Contains(t.without, k) })
			return o, fmt.Errorf("redis: unknown setting %q in the URL; the settings are %s", k, strings.Join(slices.Sorted(slices.Values(known)), ", "))
		}
	}
	for k := range files {
		if settings.Has(k) && !secure {
			return o, fmt.Errorf("redis: setting %s in the URL is for TLS, and %s:// is plain text: begin the URL with %s://", k, t.scheme, t.secure())
		}
	}
	tlsConfig, err := readTLS(*files["tls_ca"], *files["tls_cert"], *files["tls_key"], *files["tls_server_name"], o.TLS)
	o.TLS = tlsConfig
	return o, err
}

// readTLS returns a copy of base that uses the given files.
func readTLS(ca, cert, key, name string, base *tls.Config) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if base != nil {
		c = base.Clone()
	}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("redis: tls_ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("redis: tls_ca: no certificate in %s", ca)
		}
	}
	if (cert == "") != (key == "") {
		return nil, errors.New("redis: tls_cert and tls_key go together")
	}
	if cert != "" {
		var err error
		if c.GetClientCertificate, err = keypair.Files(cert, key); err != nil {
			return nil, fmt.Errorf("redis: tls_cert: %w", err)
		}
	}
	if name != "" {
		c.ServerName = name
	}
	return c, nil
}

// parseSocket parses the URL of a unix socket:
//
//	unix://user:password@/run/redis.sock?db=0&setting=value
func (t topology) parseSocket(raw string) ([]Address, url.Values, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Fragment != "" {
		return nil, nil, errors.New("redis: the URL of a unix socket cannot be parsed: write it like unix:///run/redis.sock, and escape special characters (@ is %40, / in a password is %2F)")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, nil, fmt.Errorf("redis: the settings in the URL of %s cannot be parsed: write them like ?max_ttl=60s&node_timeout=50ms", u.Path)
	}
	switch {
	case u.Host != "" || u.Path == "" || u.Path == "/":
		// The host is not echoed: it may be half a password.
		return nil, nil, errors.New("redis: the URL of a unix socket has no path: write it with three slashes, as in unix:///run/redis.sock")
	case strings.ContainsAny(u.Path, ",>"): // which separate the nodes of a membership
		return nil, nil, fmt.Errorf("redis: the path of the unix socket %s contains a comma or a >: choose another path", u.Path)
	}
	a := Address{Host: path.Clean(u.Path), Username: u.User.Username()}
	a.Password, _ = u.User.Password()
	if db := query.Get("db"); db != "" {
		if a.db, err = strconv.Atoi(db); err != nil || a.db < 0 {
			return nil, nil, fmt.Errorf("redis: db=%q in the URL of %s is not the number of a database", db, u.Path)
		}
	}
	query.Del("db")
	return []Address{a}, query, nil
}

// Invalid wraps an error that says what is wrong with a URL or with options, so that it
// matches store.ErrInvalid. Nil stays nil.
func Invalid(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", store.ErrInvalid, err)
}
