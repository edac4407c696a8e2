package s3store

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/leasehold-dev/leasehold/internal/objects"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// Options configure a store. The zero value and nil are good defaults for S3 itself. What is set both here
// and in the URL must have the same value in both.
type Options struct {
	// Prefix is what the keys of all objects begin with, followed by a slash. Empty means
	// "leasehold".
	Prefix string
	// Endpoint is the URL of the server. Empty means that of the environment or the shared
	// configuration, or else S3 itself.
	Endpoint string
	// Region is that of the bucket, and Profile the part of the shared configuration that is
	// used. Empty means that of the environment.
	Region, Profile string
	// VirtualHost puts the bucket into the name of the host even if there is an Endpoint.
	VirtualHost bool
	// Durable says that the server acknowledges a write only when it outlives a crash, that
	// reads see the newest one, and that no copy of the server takes over without it.
	// It is implied for S3 itself.
	Durable bool
	// Skew lets clients use the dates of the server, and is how far its clock may jump, or
	// those of several servers be apart. A client that finds the lock of a dead holder then
	// waits for the rest of its TTL and Skew at most, and not for a whole TTL. Zero
	// means that no date is used.
	Skew time.Duration
	// Poll is how often a waiter looks at first. Zero means once a second. A waiter that waits
	// long looks less and less often, up to 16 times Poll.
	Poll time.Duration
	// Timeout bounds each step. A request is made again after a quarter of it. Zero means 10 s.
	Timeout time.Duration
	// Config is used in place of the environment and the shared configuration, if it is not nil.
	Config *aws.Config
	// Logger is told of trouble that no caller learns of. Nil means none.
	Logger *slog.Logger

	bucket string // from the URL
}

// bucketForm leaves the length to complete: a program that is large for its counts would be made
// at each start.
var bucketForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]+$`)

func (o *Options) complete() error {
	if len(o.bucket) > 255 || !bucketForm.MatchString(o.bucket) {
		return fmt.Errorf("%w: %q is no name of a bucket", store.ErrInvalid, store.Excerpt(o.bucket))
	}
	return nil
}

var engine = objects.Engine[Options, *driver]{
	Name: "s3", Scheme: "s3", Service: "S3", Form: "BUCKET/PREFIX?region=REGION", Credentials: "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in a profile", Server: "endpoint=https://HOST:PORT",
	Common: func(o *Options) objects.Common {
		return objects.Common{Bucket: &o.bucket, Prefix: &o.Prefix, Endpoint: &o.Endpoint, Skew: &o.Skew, Poll: &o.Poll, Timeout: &o.Timeout, Logger: &o.Logger}
	},
	Settings: []objects.Setting[Options]{
		objects.Text("region", func(o *Options) *string { return &o.Region }),
		objects.Text("profile", func(o *Options) *string { return &o.Profile }),
		objects.True("virtual_host", func(o *Options) *bool { return &o.VirtualHost }),
		objects.True("durable", func(o *Options) *bool { return &o.Durable }),
	},
	Complete: (*Options).complete,
	Connect:  connect,
}

func init() { engine.Register() }

// Open makes a client of the bucket that a URL names, and tries whether its server heeds
// conditions:
//
//	s3://BUCKET/PREFIX?region=eu-central-1
//	s3://BUCKET/PREFIX?endpoint=https://HOST:9000&durable=true
//
// The default prefix is "leasehold". endpoint, region, profile, virtual_host, durable, skew, poll
// and timeout are those of Options. A nil o means the defaults. Open blocks for Options.Timeout
// at most. The error matches store.ErrInvalid if the URL or the options are wrong, as a URL
// with credentials is. The store is safe for concurrent use.
//
// Credentials come from where other programs with the SDK of AWS look for them: the
// environment, the shared configuration, or the machine. They are fetched again before they
// end.
func Open(ctx context.Context, url string, o *Options) (*store.Store, error) {
	return engine.Open(ctx, url, o)
}

// connect makes a driver. It has not asked the server for anything yet.
func connect(ctx context.Context, o Options) (*driver, error) {
	cfg, err := configOf(ctx, o)
	if err != nil {
		return nil, err
	}
	d := &driver{o: o}
	d.client = s3.NewFromConfig(cfg, func(s *s3.Options) {
		if o.Endpoint != "" {
			s.BaseEndpoint = &o.Endpoint
		}
		d.aws = s.BaseEndpoint == nil
		s.UsePathStyle = !d.aws && !o.VirtualHost
		// A request that the SDK repeats after a lost answer conflicts with itself. recordstore
		// repeats what it knows to be safe.
		s.Retryer = aws.NopRetryer{}
		// Many servers do not know the newer checksums, and a damaged record is refused anyway.
		s.RequestChecksumCalculation, s.ResponseChecksumValidation = aws.RequestChecksumCalculationWhenRequired, aws.ResponseChecksumValidationWhenRequired
		if s.Region == "" && !d.aws {
			s.Region = "us-east-1" // which other servers expect
		}
	})
	d.node = "s3://" + o.bucket
	if base := d.client.Options().BaseEndpoint; base != nil {
		d.node += " at " + *base
	}
	if d.client.Options().Region == "" {
		return nil, recordstore.Refusal("the region of the bucket is not known: give it in the URL (region=eu-central-1), or in AWS_REGION")
	}
	if _, err := d.client.Options().Credentials.Retrieve(ctx); err != nil {
		return nil, recordstore.Refusal("there are no credentials: give them in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, in a profile of the shared configuration, or as a role of the machine: %w", err)
	}
	return d, nil
}

func configOf(ctx context.Context, o Options) (aws.Config, error) {
	if o.Config != nil {
		c := o.Config.Copy()
		c.Region = cmp.Or(o.Region, c.Region)
		return c, nil
	}
	options := []func(*config.LoadOptions) error{
		config.WithLogger(logging.Nop{}),
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.MaxIdleConnsPerHost = 64 })),
	}
	if o.Region != "" {
		options = append(options, config.WithRegion(o.Region))
	}
	if o.Profile != "" {
		options = append(options, config.WithSharedConfigProfile(o.Profile))
	}
	c, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return c, recordstore.Refusal("the configuration of AWS cannot be used: %w", err)
	}
	if b, ok := c.HTTPClient.(*awshttp.BuildableClient); ok {
		c.HTTPClient = b.Freeze() // Close can close the connections of that one only
	}
	return c, nil
}
