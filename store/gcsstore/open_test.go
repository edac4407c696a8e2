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
		"gs://my-bucket":                     {Prefix: "leasehold"},
		"gs://b-1/app/locks/":                {Prefix: "app/locks"},
		"gs://bb?endpoint=http://[::1]:900":  {Prefix: "leasehold", Endpoint: "http://[::1]:900"},
		"gs://bb?skew=1m&poll=5s&timeout=9s": {Prefix: "leasehold", Skew: time.Minute, Poll: 5 * time.Second, Timeout: 9 * time.Second},
	} {
		o, err := engine.Options(url, nil)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		want.bucket = o.bucket
		want, _ = engine.Options("gs://"+o.bucket, &want)
		if o != want || !strings.HasPrefix(url[5:], o.bucket) {
			t.Errorf("%s: %+v, want %+v", url, o, want)
		}
	}
	for _, url := range []string{"", "gs:", "gs://", "s3://a", "gs://Bucket", "gs://me:hush@bb", "gs://bb/a//b", "gs://bb/../x", "gs://bb?x=1", "gs://bb?skew=5", "gs://bb?endpoint=host", "gs://bb?endpoint=https://k:hush@h", "gs://bb?skew=1s&skew=2s", "gs://bb#x", "gs://" + strings.Repeat("b", 223)} {
		if _, err := engine.Options(url, nil); !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v, want an error that matches ErrInvalid and has no secret", url, err)
		}
	}
}

// What the options say is added to what the URL says, and must not contradict it.
func TestOptionsBesideTheURL(t *testing.T) {
	const url = "gs://bbb?timeout=3s"
	o, err := engine.Options(url, &Options{Skew: time.Minute, Timeout: 3 * time.Second})
	if err != nil || o.Skew != time.Minute || o.Timeout != 3*time.Second {
		t.Errorf("options beside the URL: %+v, %v", o, err)
	}
	if _, err := Open(t.Context(), url, &Options{Timeout: time.Second}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("two timeouts: %v, want %v", err, store.ErrInvalid)
	}
}
