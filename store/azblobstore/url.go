package azblobstore

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/objects"
	"github.com/leasehold-dev/leasehold/store"
)

func init() { store.Register("azblob", openURL) }

func openURL(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
	container, options, err := ParseURL(url)
	if err != nil {
		return nil, err
	}
	options.Logger = o.Logger
	return Open(ctx, container, options)
}

var scheme = objects.Scheme[Options]{
	Name: "azblob", Service: "Azure Blob Storage", Form: "CONTAINER/PREFIX?account=ACCOUNT", Credentials: "AZURE_STORAGE_KEY, or by a login to Entra ID",
	Settings: []objects.Setting[Options]{
		objects.Text("account", func(o *Options) *string { return &o.Account }),
		objects.Text("endpoint", func(o *Options) *string { return &o.Endpoint }),
		objects.Time("skew", func(o *Options) *time.Duration { return &o.Skew }),
		objects.Time("poll", func(o *Options) *time.Duration { return &o.Poll }),
		objects.Time("timeout", func(o *Options) *time.Duration { return &o.Timeout }),
	},
}

// ParseURL parses a URL of the scheme azblob:
//
//	azblob://CONTAINER/PREFIX?account=ACCOUNT
//
// The default prefix is "leasehold", and the default account is that of AZURE_STORAGE_ACCOUNT.
// account, endpoint, skew, poll and timeout are those of Options.
//
// ParseURL connects to nothing. Its errors match store.ErrInvalid. A URL with credentials is
// one: they belong into the environment.
func ParseURL(raw string) (container string, o *Options, err error) {
	o = &Options{}
	container, o.Prefix, err = scheme.Parse(raw, o)
	if err != nil {
		return "", nil, err
	}
	c, err := o.checked(container)
	o.Prefix, o.Account = c.Prefix, c.Account
	return container, o, err
}
