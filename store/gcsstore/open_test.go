package gcsstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

func TestParseURL(t *testing.T) {
	for url, want := range map[string]Options{
		"gs://my-bucket":                     {bucket: "my-bucket", Prefix: "leasehold"},
		"gs://b-1/app/locks/":                {bucket: "b-1", Prefix: "app/locks"},
		"gs://bb?endpoint=http://[::1]:900":  {bucket: "bb", Prefix: "leasehold", Endpoint: "http://[::1]:900"},
		"gs://bb?skew=1m&poll=5s&timeout=9s": {bucket: "bb", Prefix: "leasehold", Skew: time.Minute, Poll: 5 * time.Second, Timeout: 9 * time.Second},
	} {
		o, err := engine.Options(url, nil)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		want, _ = engine.Options("gs://"+want.bucket, &want) // with the defaults
		if o != want {
			t.Errorf("%s: %+v, want %+v", url, o, want)
		}
	}
	for _, url := range []string{"", "gs:", "gs://", "s3://a", "gs://Bucket", "gs://me:hush@bb", "gs://bb/a//b", "gs://bb/../x", "gs://bb?x=1", "gs://bb?skew=5", "gs://bb?endpoint=host", "gs://bb?endpoint=https://k:hush@h", "gs://bb?skew=1s&skew=2s", "gs://bb#x", "gs://" + strings.Repeat("b", 223)} {
		if _, err := engine.Options(url, nil); !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v, want an error that matches ErrInvalid and has no secret", url, err)
		}
	}
}
