package etcdstore_test

import (
	"crypto/tls"
	"crypto/x509"
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
		"etcd://a":                      {[]string{"a:2379"}, etcdstore.Options{Prefix: "leasehold", Timeout: 5 * time.Second}},
		" etcd://a:1,b,[::1]:3/jobs/x ": {[]string{"a:1", "b:2379", "[::1]:3"}, etcdstore.Options{Prefix: "jobs/x", Timeout: 5 * time.Second}},
		"etcd://u:p%40@a,b?max_ttl=20s&timeout=3s&floor=7": {[]string{"a:2379", "b:2379"},
			etcdstore.Options{Prefix: "leasehold", Username: "u", Password: "p@", MaxTTL: 20 * time.Second, Timeout: 3 * time.Second, Floor: 7}},
		"etcd://u@a": {[]string{"a:2379"}, etcdstore.Options{Prefix: "leasehold", Timeout: 5 * time.Second, Username: "u", Password: "fromenv"}},
	} {
		endpoints, o, err := etcdstore.ParseURL(url, nil)
		if err != nil || !slices.Equal(endpoints, want.endpoints) {
			t.Errorf("%q: %q, %v, want %q", url, endpoints, err, want.endpoints)
			continue
		}
		if o.Prefix != want.o.Prefix || o.MaxTTL != want.o.MaxTTL || o.Timeout != want.o.Timeout || o.Floor != want.o.Floor ||
			o.Username != want.o.Username || o.Password != want.o.Password || o.TLS != nil {
			t.Errorf("%q: %+v, want %+v", url, o, want.o)
		}
	}
	if _, o, err := etcdstore.ParseURL("etcds://a", nil); err != nil || o.TLS == nil {
		t.Errorf("etcds: %+v, %v, want TLS", o, err)
	}
	for _, url := range []string{
		"", "etcd:", "etcd://", "etcd://a,,b", "http://a", "etcd://a:x", "etcd://a?nope=1", "etcd://a?max_ttl=1", "etcd://a?max_ttl=-1s", "etcd://a?max_ttl=1ms",
		"etcd://a?timeout=1s&timeout=2s", "etcd://a?ca=/x", "etcds://a?ca=/nowhere/secretword", "etcds://a?cert=/nowhere", "etcd://u:secretword/@a", "etcd://u:secretword#@a", "etcd://a etcd://b", "etcd://:secretword@a",
	} {
		if _, _, err := etcdstore.ParseURL(url, nil); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%q: %v, want %v", url, err, store.ErrInvalid)
		} else if strings.Contains(err.Error(), "secretword") && !strings.Contains(url, "ca=") {
			t.Errorf("%q: the error shows the password: %v", url, err)
		}
	}
}

// What the options say is added to what the URL says, and must not contradict it.
func TestOptionsBesideTheURL(t *testing.T) {
	t.Setenv("ETCD_PASSWORD", "fromenv")
	roots := x509.NewCertPool()
	_, o, err := etcdstore.ParseURL("etcds://u@a/jobs?timeout=3s", &etcdstore.Options{Prefix: "jobs", Password: "given", MaxTTL: time.Minute, TLS: &tls.Config{RootCAs: roots}})
	if err != nil || o.Prefix != "jobs" || o.Username != "u" || o.Password != "given" || o.Timeout != 3*time.Second || o.MaxTTL != time.Minute || o.TLS.RootCAs != roots {
		t.Errorf("options beside the URL: %+v, %v", o, err)
	}
	for url, o := range map[string]etcdstore.Options{
		"etcd://a/jobs":             {Prefix: "others"},
		"etcd://a?timeout=3s":       {Timeout: time.Second},
		"etcd://u:secretword@a":     {Password: "other"},
		"etcd://a":                  {TLS: &tls.Config{}},
		"etcd://a?max_ttl=1m&ca=/x": {},
	} {
		if _, err := etcdstore.Open(t.Context(), url, &o); !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "secretword") {
			t.Errorf("%s with %+v: %v, want %v", url, o, err, store.ErrInvalid)
		}
	}
}
