package s3store

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

func init() { store.Register("s3", openURL) }

func openURL(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
	bucket, options, err := ParseURL(url)
	if err != nil {
		return nil, err
	}
	options.Logger = o.Logger
	return Open(ctx, bucket, options)
}

// settings are what a URL can set.
var settings = map[string]func(o *Options, v string) error{
	"endpoint": func(o *Options, v string) error { o.Endpoint = v; return nil },
	"region":   func(o *Options, v string) error { o.Region = v; return nil },
	"profile":  func(o *Options, v string) error { o.Profile = v; return nil },
	"virtual_host": func(o *Options, v string) error {
		o.VirtualHost = true
		return onlyTrue(v)
	},
	"durable": func(o *Options, v string) error {
		o.Durable = true
		return onlyTrue(v)
	},
	"skew":    func(o *Options, v string) (err error) { o.Skew, err = time.ParseDuration(v); return err },
	"poll":    func(o *Options, v string) (err error) { o.Poll, err = time.ParseDuration(v); return err },
	"timeout": func(o *Options, v string) (err error) { o.Timeout, err = time.ParseDuration(v); return err },
}

func onlyTrue(v string) error {
	if v != "true" {
		return fmt.Errorf("it can only be true")
	}
	return nil
}

// ParseURL parses a URL of the scheme s3:
//
//	s3://BUCKET/PREFIX?region=eu-central-1
//	s3://BUCKET/PREFIX?endpoint=https://HOST:9000&durable=true
//
// The default prefix is "leasehold". endpoint, region, profile, virtual_host, durable, skew,
// poll and timeout are those of Options.
//
// ParseURL connects to nothing. Its errors match store.ErrInvalid. A URL with credentials is
// one: they belong into the environment or the shared configuration of AWS.
func ParseURL(raw string) (bucket string, o *Options, err error) {
	raw = strings.TrimSpace(raw)
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.Fragment != "" || strings.ContainsAny(raw, " \t\r\n") {
		return "", nil, fmt.Errorf("%w: the URL of S3 has the form s3://BUCKET/PREFIX?region=REGION", store.ErrInvalid)
	}
	if u.User != nil {
		return "", nil, fmt.Errorf("%w: the URL of S3 has no credentials: give them in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in a profile", store.ErrInvalid)
	}
	if u.Port() != "" {
		return "", nil, fmt.Errorf("%w: the URL of S3 begins with the bucket: name the server as endpoint=https://HOST:PORT", store.ErrInvalid)
	}
	o = &Options{Prefix: u.Path}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", nil, fmt.Errorf("%w: the settings in the URL of S3 cannot be read", store.ErrInvalid)
	}
	for name, values := range query {
		set := settings[name]
		if set == nil {
			return "", nil, fmt.Errorf("%w: unknown setting %q of S3: use endpoint, region, profile, virtual_host, durable, skew, poll, timeout", store.ErrInvalid, store.Excerpt(name))
		}
		if err := set(o, values[0]); err != nil || len(values) > 1 {
			return "", nil, fmt.Errorf("%w: %s=%q cannot be used: it is given once, as a time such as 60s, a name, or true", store.ErrInvalid, name, store.Excerpt(values[0]))
		}
	}
	c, err := o.checked(u.Host)
	o.Prefix = c.Prefix
	return u.Host, o, err
}
