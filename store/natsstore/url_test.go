package natsstore

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

func TestParseURL(t *testing.T) {
	t.Setenv("NATS_PASSWORD", "from-environment")
	for url, want := range map[string]Options{
		"nats://10.0.0.1":                                               {},
		"nats://me@10.0.0.1:4333,[::1]:1/locks":                         {Bucket: "locks", User: "me", Password: "from-environment"},
		"nats://me:p%40ss@h/?sync=always&skew=5s&timeout=2s&replicas=3": {User: "me", Password: "p@ss", Synced: true, Skew: 5 * time.Second, Timeout: 2 * time.Second, Replicas: 3},
		"nats://h?monitor=http://a:8222,https://b":                      {Monitors: []string{"http://a:8222", "https://b"}},
		"nats://:token@h?creds=/x/y":                                    {Token: "token", CredentialsFile: "/x/y"},
	} {
		servers, o, err := parseURL(url, nil)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		want, _ := want.checked()
		if !reflect.DeepEqual(o, want) || !strings.HasPrefix(servers[0], "nats://") || !strings.Contains(servers[0][7:], ":") {
			t.Errorf("%s: servers %q, %+v, want %+v", url, servers, o, want)
		}
	}
	for _, url := range []string{"", "redis://a", "nats://", "nats://h/a/b", "nats://h?x=1", "nats://h?sync=often", "nats://h?ca=/none", "nats://h?tls=true&ca=/none", "nats://h?skew=5", "nats://h?monitor=a:8222", "nats://me:sec/ret@h", "nats://h?skew=1s&skew=2s", "nats://h/" + strings.Repeat("b", 65)} {
		if _, _, err := parseURL(url, nil); !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "sec") && strings.Contains(url, "sec/ret") {
			t.Errorf("%q: %v, want an error that matches ErrInvalid and has no password", url, err)
		}
	}
}

// What the options say is added to what the URL says, and must not contradict it.
func TestOptionsBesideTheURL(t *testing.T) {
	const url = "nats://bbb?timeout=3s"
	_, o, err := parseURL(url, &Options{Skew: time.Minute, Timeout: 3 * time.Second})
	if err != nil || o.Skew != time.Minute || o.Timeout != 3*time.Second {
		t.Errorf("options beside the URL: %+v, %v", o, err)
	}
	if _, err := Open(t.Context(), url, &Options{Timeout: time.Second}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("two timeouts: %v, want %v", err, store.ErrInvalid)
	}
}
