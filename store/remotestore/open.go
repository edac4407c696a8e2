package remotestore

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/keypair"
	"github.com/leasehold-dev/leasehold/internal/settings"
	"github.com/leasehold-dev/leasehold/store"
)

// Options configure a store. The zero value and nil mean the defaults. What is set both here and in
// the URL must have the same value in both.
type Options struct {
	// Token is sent with each request. Default: the variable LEASEHOLD_TOKEN, or none.
	Token string
	// TLS says which servers to trust, and which certificate to show. The files of the URL are added.
	// Default: the system's.
	TLS *tls.Config
	// Timeout is how long one server may take to answer. Default 5 seconds.
	Timeout time.Duration
	// Logger receives servers that fail and answer again, and clean-up that failed. Nil: nothing
	// is logged.
	Logger *slog.Logger
	// Transport sends the requests, in the place of one made from TLS. Default: none.
	Transport http.RoundTripper
}

// DefaultTimeout is the default of Options.Timeout.
const DefaultTimeout = 5 * time.Second

// tokenVar has the token, if neither the options nor the URL name one.
const tokenVar = "LEASEHOLD_TOKEN"

func init() {
	for _, scheme := range []string{"https", "http"} {
		store.Register(scheme, func(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
			return Open(ctx, url, &Options{Logger: o.Logger})
		})
	}
}

// Open opens the store behind the servers that a URL names; see the package. It asks one of them
// what the store can do. The error matches store.ErrInvalid if the URL or the options are wrong,
// and store.ErrQuorum if no server answers. What the store behind the servers cannot do is refused with
// store.ErrUnsupported.
func Open(ctx context.Context, url string, o *Options) (*store.Store, error) {
	servers, c, err := parse(url, o)
	if err != nil {
		return nil, err
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Transport == nil {
		c.Transport = &http.Transport{
			TLSClientConfig:     c.TLS,
			ForceAttemptHTTP2:   true,
			TLSHandshakeTimeout: c.Timeout,
			DialContext:         (&net.Dialer{Timeout: c.Timeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}).DialContext,
			MaxIdleConnsPerHost: 128,
			IdleConnTimeout:     time.Minute,
			HTTP2:               &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: c.Timeout},
		}
	}
	s := newEngine(servers, c)
	if err := s.ask(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return store.New(s), nil
}

// parse returns the base URLs of the servers, and the options with what the URL sets.
func parse(rawURL string, given *Options) (servers []string, o Options, err error) {
	wrong := func(format string, args ...any) ([]string, Options, error) {
		return nil, o, fmt.Errorf("%w: the URL of a leasehold server: %s", store.ErrInvalid, fmt.Sprintf(format, args...))
	}
	var query url.Values
	prefix := ""
	for i, one := range strings.Fields(rawURL) {
		scheme, rest, ok := strings.Cut(one, "://")
		if !ok || scheme != "https" && scheme != "http" {
			return wrong("it begins with https:// or http://")
		}
		rest, rawQuery, _ := strings.Cut(rest, "?")
		hosts, path, _ := strings.Cut(rest, "/")
		q, err := url.ParseQuery(rawQuery)
		if err != nil || strings.Contains(rest, "#") {
			return wrong("what follows the ? has to be NAME=VALUE pairs")
		}
		if i > 0 && len(q) > 0 {
			return wrong("only the first of several URLs can have options")
		}
		if i == 0 {
			query = q
		}
		prefix = strings.TrimRight("/"+path, "/")
		if strings.Contains(hosts, "@") {
			return wrong("it has no user and password: put the token into the variable %s or into a token_file", tokenVar)
		}
		for host := range strings.SplitSeq(hosts, ",") {
			u, err := url.Parse(scheme + "://" + host + prefix)
			if err != nil || u.Hostname() == "" {
				return wrong("a host is missing or wrong")
			}
			if scheme == "http" && !isLoopback(u.Hostname()) {
				return wrong("http is for the loopback interface: use https for host %q", u.Hostname())
			}
			servers = append(servers, u.String())
		}
	}
	if len(servers) == 0 {
		return wrong("it is empty")
	}
	fail := func(format string, args ...any) error { _, _, err := wrong(format, args...); return err }
	o, err = withQuery(query, given, fail)
	return servers, o, err
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// withQuery returns the options with what the query of a URL sets.
func withQuery(q url.Values, given *Options, fail func(string, ...any) error) (o Options, err error) {
	for name := range q {
		switch name {
		case "token_file", "ca", "cert", "key", "timeout":
		default:
			return o, fail("there is no option %q: choose token_file, ca, cert, key, timeout", name)
		}
	}
	var says Options
	if file := q.Get("token_file"); file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return o, fail("token_file: %v", err)
		}
		says.Token = strings.TrimSpace(string(b))
	}
	if t := q.Get("timeout"); t != "" {
		d, err := time.ParseDuration(t)
		if err != nil || d <= 0 {
			return o, fail("timeout %q is no time such as 5s", t)
		}
		says.Timeout = d
	}
	if o, err = settings.Join(given, says); err != nil {
		return o, err
	}
	if o.Token == "" {
		o.Token = strings.TrimSpace(os.Getenv(tokenVar))
	}
	ca, cert, key := q.Get("ca"), q.Get("cert"), q.Get("key")
	if ca+cert+key == "" {
		return o, nil
	}
	if o.TLS, err = keypair.Config(o.TLS, ca, cert, key); err != nil {
		return o, fail("%v", err)
	}
	return o, nil
}
