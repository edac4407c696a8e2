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
		"s3://my.bucket":              {Prefix: "leasehold"},
		"s3://b-1/app/locks/":         {Prefix: "app/locks"},
		"s3://bb?region=eu-central-1": {Prefix: "leasehold", Region: "eu-central-1"},
		"s3://bb?endpoint=http://[::1]:9000&durable=true&virtual_host=true": {Prefix: "leasehold", Endpoint: "http://[::1]:9000", Durable: true, VirtualHost: true},
		"s3://bb?profile=p&skew=1m&poll=5s&timeout=20s":                     {Prefix: "leasehold", Profile: "p", Skew: time.Minute, Poll: 5 * time.Second, Timeout: 20 * time.Second},
	} {
		o, err := engine.Options(url, nil)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		want.bucket = o.bucket
		want, _ = engine.Options("s3://"+o.bucket, &want)
		if o != want || !strings.HasPrefix(url[5:], o.bucket) {
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

// What the options say is added to what the URL says, and must not contradict it.
func TestOptionsBesideTheURL(t *testing.T) {
	const url = "s3://bbb?timeout=3s"
	o, err := engine.Options(url, &Options{Skew: time.Minute, Timeout: 3 * time.Second})
	if err != nil || o.Skew != time.Minute || o.Timeout != 3*time.Second {
		t.Errorf("options beside the URL: %+v, %v", o, err)
	}
	if _, err := Open(t.Context(), url, &Options{Timeout: time.Second}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("two timeouts: %v, want %v", err, store.ErrInvalid)
	}
}
