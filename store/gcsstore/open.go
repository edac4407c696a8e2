package gcsstore

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/leasehold-dev/leasehold/internal/objects"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// Options configure a store. The zero value and nil are good defaults. What is set both here
// and in the URL must have the same value in both.
type Options struct {
	// Prefix is what the keys of all objects begin with, followed by a slash. Empty means
	// "leasehold".
	Prefix string
	// Endpoint is the URL of another server, such as an emulator. Empty means Cloud Storage.
	Endpoint string
	// Skew is how far the clock of the server may jump. With it, clients use the server's dates: a client
	// that finds the lock of a dead holder then waits for the rest of its TTL and Skew at
	// most, and not for a whole TTL. Zero means that no date is used.
	Skew time.Duration
	// Poll is how often a waiter looks at first. Zero means once in two seconds. A waiter that
	// waits long looks less and less often, up to 16 times Poll.
	Poll time.Duration
	// Timeout bounds each step. A request is made again after a quarter of it. Zero means 20 s.
	Timeout time.Duration
	// Client makes the requests, and is used in place of one with the credentials of the
	// environment if it is not nil.
	Client *http.Client
	// Logger is told of trouble that no caller learns of. Nil means none.
	Logger *slog.Logger

	bucket string // from the URL
}

const (
	endpoint = "https://storage.googleapis.com"
	scope    = "https://www.googleapis.com/auth/devstorage.read_write"
)

// bucketForm leaves the length to complete: a program that is large for its counts would be made
// at each start.
var bucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]+$`)

func (o *Options) complete() error {
	o.Endpoint, o.Poll, o.Timeout = cmp.Or(o.Endpoint, endpoint), cmp.Or(o.Poll, 2*time.Second), cmp.Or(o.Timeout, 20*time.Second)
	if len(o.bucket) > 222 || !bucketForm.MatchString(o.bucket) {
		return fmt.Errorf("%w: %q is no name of a bucket", store.ErrInvalid, store.Excerpt(o.bucket))
	}
	return nil
}

var engine = objects.Engine[Options, *driver]{
	Name: "gcs", Scheme: "gs", Service: "Cloud Storage", Form: "BUCKET/PREFIX", Credentials: "a file that GOOGLE_APPLICATION_CREDENTIALS names", Server: "endpoint=https://HOST:PORT",
	Common: func(o *Options) objects.Common {
		return objects.Common{Bucket: &o.bucket, Prefix: &o.Prefix, Endpoint: &o.Endpoint, Skew: &o.Skew, Poll: &o.Poll, Timeout: &o.Timeout, Logger: &o.Logger}
	},
	Complete: (*Options).complete,
	Connect:  connect,
}

func init() { engine.Register() }

// Open makes a client of the bucket that a URL names, and tries whether it can write there, and
// whether the server heeds generations:
//
//	gs://BUCKET/PREFIX?skew=1m
//
// The default prefix is "leasehold". endpoint, skew, poll and timeout are those of Options. A nil
// o means the defaults. Open blocks for Options.Timeout at most. The error matches
// store.ErrInvalid if the URL or the options are wrong, as a URL with credentials is. The store
// is safe for concurrent use.
//
// Credentials are those that Google's libraries find: the file that
// GOOGLE_APPLICATION_CREDENTIALS names, the login of gcloud, or the machine's service account.
// None are sent to an Endpoint without TLS.
func Open(ctx context.Context, url string, o *Options) (*store.Store, error) {
	return engine.Open(ctx, url, o)
}

// connect makes a driver. It has not asked the server for anything yet.
func connect(ctx context.Context, o Options) (*driver, error) {
	d := &driver{o: o, node: "gs://" + o.bucket, client: objects.Client{HTTP: o.Client, Timeout: o.Timeout / 4, Say: say, Conflict: conflict, OfOne: true}}
	if o.Endpoint != endpoint {
		d.node += " at " + o.Endpoint
	}
	if d.client.HTTP != nil {
		return d, nil
	}
	t := objects.Transport()
	d.client.HTTP = &http.Client{Transport: t}
	if strings.HasPrefix(o.Endpoint, "http:") {
		return d, nil
	}
	// The context of credentials lasts: they are fetched again before they end.
	lasting := context.WithValue(context.WithoutCancel(ctx), oauth2.HTTPClient, &http.Client{Transport: t})
	found, err := google.FindDefaultCredentials(lasting, scope)
	if err != nil {
		return nil, recordstore.Refusal("there are no credentials: name a file with some in GOOGLE_APPLICATION_CREDENTIALS, run \"gcloud auth application-default login\", or give the machine a service account: %v", err)
	}
	d.client.HTTP.Transport = authorized{&oauth2.Transport{Base: t, Source: found.TokenSource}, t}
	return d, nil
}

// authorized adds credentials to requests. CloseIdleConnections is missing in what it wraps.
type authorized struct {
	*oauth2.Transport
	base *http.Transport
}

func (a authorized) CloseIdleConnections() { a.base.CloseIdleConnections() }
