package kubernetesstore

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/leasehold-dev/leasehold/internal/objects"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// Options configure a store. The zero value and nil are good defaults. What is set both here
// and in the URL must have the same value in both.
type Options struct {
	// Kubeconfig is a file with servers and credentials. Empty means those that KUBECONFIG names, or
	// ~/.kube/config, or, if there are none, the service account of the pod.
	Kubeconfig string
	// Context is one of the kubeconfig. Empty means its current one.
	Context string
	// Config is used in place of a kubeconfig if it is not nil. Its limits of requests do not count.
	Config *rest.Config
	// Skew has the API servers note dates, and lets clients use them. It is how far apart the
	// clocks of these servers, or that of one which was set, can be. A client that finds the
	// lock of a dead holder which had it, too, then waits for the rest of the TTL and Skew at
	// most, and not for a whole TTL. Zero means that no date is used.
	Skew time.Duration
	// Timeout bounds each step. A request is made again after a quarter of it. Zero means 10 s.
	Timeout time.Duration
	// Logger is told of trouble that no caller learns of. Nil means none.
	Logger *slog.Logger

	namespace string // from the URL
}

var namespaceForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

func (o *Options) complete() error {
	if len(o.namespace) > 63 || !namespaceForm.MatchString(o.namespace) {
		return fmt.Errorf("%w: %q is no name of a namespace", store.ErrInvalid, store.Excerpt(o.namespace))
	}
	return nil
}

var engine = objects.Engine[Options, *driver]{
	Name: "kubernetes", Scheme: "kubernetes", Service: "Kubernetes", Form: "NAMESPACE", Credentials: "a kubeconfig, or by the pod's service account", Server: "a context of a kubeconfig",
	Common: func(o *Options) objects.Common {
		return objects.Common{Bucket: &o.namespace, Skew: &o.Skew, Timeout: &o.Timeout, Logger: &o.Logger}
	},
	Settings: []objects.Setting[Options]{
		objects.Text("context", func(o *Options) *string { return &o.Context }),
		objects.Text("kubeconfig", func(o *Options) *string { return &o.Kubeconfig }),
	},
	Complete: (*Options).complete,
	Connect:  connect,
}

func init() { engine.Register() }

// Open makes a client of the API server, and tries whether it can look at locks in the
// namespace that a URL names:
//
//	kubernetes://NAMESPACE?context=NAME
//
// context, kubeconfig, skew and timeout are those of Options. A nil o means the defaults. Open
// blocks for Options.Timeout at most. The error matches store.ErrInvalid if the URL or the
// options are wrong, as a URL with credentials is. The store is safe for concurrent use.
func Open(ctx context.Context, url string, o *Options) (*store.Store, error) {
	return engine.Open(ctx, url, o)
}

// config returns the server and the credentials.
func (o *Options) config() (*rest.Config, error) {
	if o.Config != nil {
		return rest.CopyConfig(o.Config), nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.Context}).ClientConfig()
	if err != nil {
		return nil, recordstore.Refusal("there is no API server to ask: name a file with one in KUBECONFIG, or run in a pod with a service account: %w", err)
	}
	return config, nil
}

// connect makes a driver. It has not asked the server for anything yet.
func connect(_ context.Context, o Options) (*driver, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	config.UserAgent = cmp.Or(config.UserAgent, manager)
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, recordstore.Refusal("%w", err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, recordstore.Refusal("%w", err)
	}
	return &driver{
		o: o, server: strings.TrimRight(server.String(), "/"), node: "kubernetes://" + o.namespace + " at " + server.Host,
		unverified: config.Insecure || server.Scheme != "https",
		client: objects.Client{
			HTTP:    &http.Client{Transport: client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
			Timeout: o.Timeout / 4, Say: say, Conflict: conflict, Untrusted: untrusted,
		},
	}, nil
}

func untrusted(err error) error {
	return recordstore.Refusal("%w: name the authority that has signed it in the kubeconfig", err)
}

// Probe implements objects.Driver.
func (d *driver) Probe(ctx context.Context) error {
	_, err := objects.Again(ctx, func(ctx context.Context) (uint64, error) { return d.floor(ctx, probeKey) })
	return err
}
