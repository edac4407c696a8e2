package s3store

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/objects"
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

var scheme = objects.Scheme[Options]{
	Name: "s3", Service: "S3", Form: "BUCKET/PREFIX?region=REGION", Credentials: "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in a profile",
	Settings: []objects.Setting[Options]{
		objects.Text("endpoint", func(o *Options) *string { return &o.Endpoint }),
		objects.Text("region", func(o *Options) *string { return &o.Region }),
		objects.Text("profile", func(o *Options) *string { return &o.Profile }),
		objects.True("virtual_host", func(o *Options) *bool { return &o.VirtualHost }),
		objects.True("durable", func(o *Options) *bool { return &o.Durable }),
		objects.Time("skew", func(o *Options) *time.Duration { return &o.Skew }),
		objects.Time("poll", func(o *Options) *time.Duration { return &o.Poll }),
		objects.Time("timeout", func(o *Options) *time.Duration { return &o.Timeout }),
	},
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
	o = &Options{}
	bucket, o.Prefix, err = scheme.Parse(raw, o)
	if err != nil {
		return "", nil, err
	}
	c, err := o.checked(bucket)
	o.Prefix = c.Prefix
	return bucket, o, err
}
