package kubernetesstore

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/objects"
	"github.com/leasehold-dev/leasehold/store"
)

func init() { store.Register("kubernetes", openURL) }

func openURL(ctx context.Context, url string, o store.OpenOptions) (*store.Store, error) {
	namespace, options, err := ParseURL(url)
	if err != nil {
		return nil, err
	}
	options.Logger = o.Logger
	return Open(ctx, namespace, options)
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

// ParseURL parses a URL of the scheme kubernetes:
//
//	kubernetes://NAMESPACE?context=NAME
//
// context, kubeconfig, skew and timeout are those of Options.
//
// ParseURL connects to nothing and reads no file. Its errors match store.ErrInvalid.
func ParseURL(raw string) (namespace string, o *Options, err error) {
	o = &Options{}
	namespace, path, err := scheme.Parse(raw, o)
	if err != nil {
		return "", nil, err
	}
	if path != "" && path != "/" {
		return "", nil, fmt.Errorf("%w: the URL of Kubernetes has the form kubernetes://NAMESPACE, and nothing after the namespace but settings", store.ErrInvalid)
	}
	_, err = o.checked(namespace)
	return namespace, o, err
}
