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
		"azblob://my-container":                      {container: "my-container", Prefix: "leasehold", Account: "acc"},
		"azblob://b-12/app/locks/?account=other1":    {container: "b-12", Prefix: "app/locks", Account: "other1"},
		"azblob://bbb?endpoint=http://[::1]:900/acc": {container: "bbb", Prefix: "leasehold", Account: "acc", Endpoint: "http://[::1]:900/acc"},
		"azblob://bbb?skew=1m&poll=5s&timeout=9s":    {container: "bbb", Prefix: "leasehold", Account: "acc", Skew: time.Minute, Poll: 5 * time.Second, Timeout: 9 * time.Second},
	} {
		o, err := engine.Options(url, nil)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		want, _ = engine.Options("azblob://"+want.container, &want) // with the defaults
		if o != want {
			t.Errorf("%s: %+v, want %+v", url, o, want)
		}
	}
	for _, url := range []string{"", "azblob:", "azblob://", "s3://aaa", "azblob://Container", "azblob://a--b", "azblob://me:hush@bbb", "azblob://bbb/a//b", "azblob://bbb?x=1", "azblob://bbb?skew=5", "azblob://bbb?account=A", "azblob://bbb?endpoint=https://k:hush@h", "azblob://bbb?skew=1s&skew=2s", "azblob://bbb#x"} {
		if _, err := engine.Options(url, nil); !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v, want an error that matches ErrInvalid and has no secret", url, err)
		}
	}
}
