package etcdstore_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

func TestParseEtcdURL(t *testing.T) {
	t.Setenv("ETCD_PASSWORD", "fromenv")
	for url, want := range map[string]struct {
		endpoints []string
		o         etcdstore.Options
	}{
		"etcd://a":                      {[]string{"a:2379"}, etcdstore.Options{}},
		" etcd://a:1,b,[::1]:3/jobs/x ": {[]string{"a:1", "b:2379", "[::1]:3"}, etcdstore.Options{Prefix: "jobs/x"}},
		"etcd://u:p%40@a,b?max_ttl=20s&timeout=3s&floor=7": {[]string{"a:2379", "b:2379"},
			etcdstore.Options{Username: "u", Password: "p@", MaxTTL: 20 * time.Second, Timeout: 3 * time.Second, Floor: 7}},
		"etcd://u@a": {[]string{"a:2379"}, etcdstore.Options{Username: "u", Password: "fromenv"}},
	} {
		endpoints, o, err := etcdstore.ParseURL(url)
		if err != nil || !slices.Equal(endpoints, want.endpoints) {
			t.Errorf("%q: %q, %v, want %q", url, endpoints, err, want.endpoints)
			continue
		}
		if o.Prefix != want.o.Prefix || o.MaxTTL != want.o.MaxTTL || o.Timeout != want.o.Timeout || o.Floor != want.o.Floor ||
			o.Username != want.o.Username || o.Password != want.o.Password || o.TLS != nil {
			t.Errorf("%q: %+v, want %+v", url, *o, want.o)
		}
	}
	if _, o, err := etcdstore.ParseURL("etcds://a"); err != nil || o.TLS == nil {
		t.Errorf("etcds: %+v, %v, want TLS", o, err)
	}
	for _, url := range []string{
		"", "etcd:", "etcd://", "etcd://a,,b", "http://a", "etcd://a:x", "etcd://a?nope=1", "etcd://a?max_ttl=1", "etcd://a?max_ttl=-1s", "etcd://a?max_ttl=1ms",
		"etcd://a?timeout=1s&timeout=2s", "etcd://a?ca=/x", "etcds://a?ca=/nowhere/secretword", "etcds://a?cert=/nowhere", "etcd://u:secretword/@a", "etcd://u:secretword#@a", "etcd://a etcd://b", "etcd://:secretword@a",
	} {
		if _, _, err := etcdstore.ParseURL(url); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%q: %v, want %v", url, err, store.ErrInvalid)
		} else if strings.Contains(err.Error(), "secretword") && !strings.Contains(url, "ca=") {
			t.Errorf("%q: the error shows the password: %v", url, err)
		}
	}
}
