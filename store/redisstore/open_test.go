package redisstore_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

// One URL names a list of servers, or several do with line breaks in between. A store
// that cannot be opened is nil.
func TestOpenByURL(t *testing.T) {
	t.Parallel() // it mostly waits
	servers := redistest.StartN(t, 3)
	hosts := addrs(servers)
	var owner string
	for _, url := range []string{"redis://" + strings.Join(hosts, ",") + "?max_ttl=90s&connect_timeout=10s", "redis://" + strings.Join(hosts, "?connect_timeout=10s\nredis://") + "?connect_timeout=10s"} {
		s, err := store.Open(t.Context(), url, nil)
		if err != nil {
			t.Fatalf("%q: %v", url, err)
		}
		defer s.Close()
		if caps := s.Caps(); caps.Nodes != 3 || owner == "" && caps.MaxTTL.Seconds() != 90 {
			t.Errorf("%q: %+v, want 3 nodes and a MaxTTL of 90s", url, caps)
		}
		r := request("a")
		var busy *store.BusyError
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); owner == "" && err != nil {
			t.Error(err)
		} else if owner != "" && (!errors.As(err, &busy) || busy.Holder.Owner != owner) {
			t.Errorf("%q: %v, want busy", url, err)
		}
		if owner == "" {
			owner = r.Owner
		}
	}
	for _, url := range []string{"redis://", "redis-sentinel://a", "redis-cluster://a/1", "redis://a\nredis-sentinel://b"} {
		if s, err := store.Open(t.Context(), url, nil); s != nil || !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%q: %v, %v, want nil and %v", url, s, err, store.ErrInvalid)
		}
	}
	c := redistest.StartCluster(t, 3, 0)
	s, err := store.Open(t.Context(), "redis-cluster://"+c.Masters[0].Addr()+"?connect_timeout=10s", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := s.Caps().Engine; got != "redis-cluster" {
		t.Errorf("the URL of a cluster opens a store of %s", got)
	}
	for _, scheme := range []string{"redis", "rediss", "redis-sentinel", "rediss-sentinel", "redis-cluster", "rediss-cluster"} {
		if !slices.Contains(store.Schemes(), scheme) {
			t.Errorf("the scheme %s is not registered", scheme)
		}
	}
}
