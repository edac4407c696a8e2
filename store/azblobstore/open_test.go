package azblobstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

func TestParseURL(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "acc")
	for url, want := range map[string]Options{
		"azblob://my-container":                      {Prefix: "leasehold", Account: "acc"},
		"azblob://b-12/app/locks/?account=other1":    {Prefix: "app/locks", Account: "other1"},
		"azblob://bbb?endpoint=http://[::1]:900/acc": {Prefix: "leasehold", Account: "acc", Endpoint: "http://[::1]:900/acc"},
		"azblob://bbb?skew=1m&poll=5s&timeout=9s":    {Prefix: "leasehold", Account: "acc", Skew: time.Minute, Poll: 5 * time.Second, Timeout: 9 * time.Second},
	} {
		o, err := engine.Options(url, nil)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		want.container = o.container
		want, _ = engine.Options("azblob://"+o.container, &want)
		if o != want || !strings.HasPrefix(url[9:], o.container) {
			t.Errorf("%s: %+v, want %+v", url, o, want)
		}
	}
	for _, url := range []string{"", "azblob:", "azblob://", "s3://aaa", "azblob://Container", "azblob://a--b", "azblob://me:hush@bbb", "azblob://bbb/a//b", "azblob://bbb?x=1", "azblob://bbb?skew=5", "azblob://bbb?account=A", "azblob://bbb?endpoint=https://k:hush@h", "azblob://bbb?skew=1s&skew=2s", "azblob://bbb#x"} {
		if _, err := engine.Options(url, nil); !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v, want an error that matches ErrInvalid and has no secret", url, err)
		}
	}
}

// What the options say is added to what the URL says, and must not contradict it.
func TestOptionsBesideTheURL(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "acc")
	const url = "azblob://bbb?timeout=3s"
	o, err := engine.Options(url, &Options{Skew: time.Minute, Timeout: 3 * time.Second})
	if err != nil || o.Skew != time.Minute || o.Timeout != 3*time.Second {
		t.Errorf("options beside the URL: %+v, %v", o, err)
	}
	if _, err := Open(t.Context(), url, &Options{Timeout: time.Second}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("two timeouts: %v, want %v", err, store.ErrInvalid)
	}
}
