package s3store

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

func TestParseURL(t *testing.T) {
	for url, want := range map[string]Options{
		"s3://my.bucket":              {bucket: "my.bucket", Prefix: "leasehold"},
		"s3://b-1/app/locks/":         {bucket: "b-1", Prefix: "app/locks"},
		"s3://bb?region=eu-central-1": {bucket: "bb", Prefix: "leasehold", Region: "eu-central-1"},
		"s3://bb?endpoint=http://[::1]:9000&durable=true&virtual_host=true": {bucket: "bb", Prefix: "leasehold", Endpoint: "http://[::1]:9000", Durable: true, VirtualHost: true},
		"s3://bb?profile=p&skew=1m&poll=5s&timeout=20s":                     {bucket: "bb", Prefix: "leasehold", Profile: "p", Skew: time.Minute, Poll: 5 * time.Second, Timeout: 20 * time.Second},
	} {
		o, err := engine.Options(url, nil)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		want, _ = engine.Options("s3://"+want.bucket, &want) // with the defaults
		if o != want {
			t.Errorf("%s: %+v, want %+v", url, o, want)
		}
	}
	for _, url := range []string{
		"", "s3:", "s3://", "redis://a", "s3://a", "s3://bb:9000/p", "s3://AKIA:hush@bb", "s3://AKIA@bb", "s3://bb/a//b", "s3://bb/../x", "s3://bb/a b", "s3://bb?x=1", "s3://bb?skew=5",
		"s3://bb?durable=yes", "s3://bb?endpoint=host:9000", "s3://bb?endpoint=https://k:hush@host", "s3://bb?skew=1s&skew=2s", "s3://bb?skew=-1s", "s3://bb#x", "s3://" + strings.Repeat("b", 256),
	} {
		if _, err := engine.Options(url, nil); !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v, want an error that matches ErrInvalid and has no secret", url, err)
		}
	}
}
