package gcsstore

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/objects"
	"github.com/leasehold-dev/leasehold/store"
)

func init() { store.Register("gs", openURL) }

func openURL(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
	bucket, options, err := ParseURL(url)
	if err != nil {
		return nil, err
	}
	options.Logger = o.Logger
	return Open(ctx, bucket, options)
}

var scheme = objects.Scheme[Options]{
	Name: "gs", Service: "Cloud Storage", Form: "BUCKET/PREFIX", Credentials: "a file that GOOGLE_APPLICATION_CREDENTIALS names",
	Settings: []objects.Setting[Options]{
		objects.Text("endpoint", func(o *Options) *string { return &o.Endpoint }),
		objects.Time("skew", func(o *Options) *time.Duration { return &o.Skew }),
		objects.Time("poll", func(o *Options) *time.Duration { return &o.Poll }),
		objects.Time("timeout", func(o *Options) *time.Duration { return &o.Timeout }),
	},
}

// ParseURL parses a URL of the scheme gs:
//
//	gs://BUCKET/PREFIX?skew=1m
//
// The default prefix is "leasehold". endpoint, skew, poll and timeout are those of Options.
//
// ParseURL connects to nothing. Its errors match store.ErrInvalid. A URL with credentials is
// one: the libraries of Google find them elsewhere.
func ParseURL(raw string) (bucket string, o *Options, err error) {
	o = &Options{}
	bucket, o.Prefix, err = scheme.Parse(raw, o)
	if err != nil {
		return "", nil, err
	}
	c, err := o.checked(bucket)
	o.Prefix = c.Prefix
	return bucket, o, err
}
