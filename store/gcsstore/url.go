package gcsstore

import (
	"context"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/objects"
	"github.com/leasehold-dev/leasehold/internal/settings"
	"github.com/leasehold-dev/leasehold/store"
)

func init() {
	store.Register("gs", func(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
		return Open(ctx, url, &Options{Logger: o.Logger})
	})
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
