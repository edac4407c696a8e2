package kubernetesstore

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/objects"
	"github.com/leasehold-dev/leasehold/internal/settings"
	"github.com/leasehold-dev/leasehold/store"
)

func init() {
	store.Register("kubernetes", func(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
		return Open(ctx, url, &Options{Logger: o.Logger})
	})
}

var scheme = objects.Scheme[Options]{
	Name: "kubernetes", Service: "Kubernetes", Form: "NAMESPACE", Credentials: "a kubeconfig, or by the pod's service account",
	Settings: []objects.Setting[Options]{
		objects.Text("context", func(o *Options) *string { return &o.Context }),
		objects.Text("kubeconfig", func(o *Options) *string { return &o.Kubeconfig }),
		objects.Time("skew", func(o *Options) *time.Duration { return &o.Skew }),
		objects.Time("timeout", func(o *Options) *time.Duration { return &o.Timeout }),
	},
}

// parseURL returns the options with what a URL sets. It connects to nothing. Its errors match
// store.ErrInvalid.
func parseURL(raw string, given *Options) (Options, error) {
	var says Options
	namespace, path, err := scheme.Parse(raw, &says)
	if err != nil {
		return says, err
	}
	if path != "" && path != "/" {
		return says, fmt.Errorf("%w: the URL of Kubernetes has the form kubernetes://NAMESPACE, and nothing after the namespace but settings", store.ErrInvalid)
	}
	o, err := settings.Join(given, says)
	if err != nil {
		return o, err
	}
	o.namespace = namespace
	return o.checked()
}
