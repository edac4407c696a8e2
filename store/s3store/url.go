package s3store

import (
	"context"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/objects"
	"github.com/leasehold-dev/leasehold/internal/settings"
	"github.com/leasehold-dev/leasehold/store"
)

func init() {
	store.Register("s3", func(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
		return Open(ctx, url, &Options{Logger: o.Logger})
	})
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

// parseURL returns the options with what a URL sets. It connects to nothing. Its errors match
// store.ErrInvalid.
func parseURL(raw string, given *Options) (Options, error) {
	var says Options
	bucket, path, err := scheme.Parse(raw, &says)
	if err != nil {
		return says, err
	}
	says.Prefix = strings.Trim(path, "/")
	o, err := settings.Join(given, says)
	if err != nil {
		return o, err
	}
	o.bucket = bucket
	return o.checked()
}
