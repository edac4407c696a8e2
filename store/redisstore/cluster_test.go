package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

func openCluster(t *testing.T, seeds []*redistest.Server, o *redisstore.Options) *store.Store {
	t.Helper()
	if o == nil {
		o = &redisstore.Options{NodeTimeout: long}
	}
	c, err := redisstore.Open(t.Context(), "redis-cluster://"+strings.Join(addrs(seeds), ","), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// openClusterFor is openCluster for leases that last too long for anybody to wait for them.
func openClusterFor(t *testing.T, ttl time.Duration, seeds []*redistest.Server) *store.Store {
	t.Helper()
	return openCluster(t, seeds, &redisstore.Options{NodeTimeout: long, ConnectTimeout: long, MaxTTL: ttl})
}

func TestConformanceOfCluster(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	another := func(t *testing.T) *store.Store { return openCluster(t, c.Masters[1:2], nil) }
	storetest.Run(t, another, storetest.Options{Second: another, AnyAfterExpiry: true})
}

// Locks that are spread over the members can be acquired, listed and renewed at once.
func TestLocksAreSpreadOverAllMembers(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	s := openCluster(t, c.Masters[2:], nil)
	var leases []store.Lease
	at := map[*redistest.Server]int{}
	for i := range 60 {
		r := request(fmt.Sprint("stock/", i))
		acquire(t, s, r)
		leases = append(leases, r)
		server := c.Has(t, r.Name)
		has(t, server, r.Name)
		at[server]++
	}
	if len(at) != 3 {
		t.Errorf("locks are on %d members, want 3", len(at))
	}
	for i, err := range s.Renew(t.Context(), leases) {
		if err != nil {
			t.Errorf("renew lease %d: %v", i, err)
		}
	}
	all, err := s.List(t.Context(), "stock/")
	if err != nil || len(all) != len(leases) {
		t.Errorf("list has %d locks, %v, want %d", len(all), err, len(leases))
	}
	for _, r := range leases {
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
			t.Error(err)
		}
	}
}

// All keys of a lock are in one slot, also if its name has braces. A lock excludes plain
// clients unless its name has a }, or a % at the end.
func TestNamesWithBracesInACluster(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	s := openCluster(t, c.Masters, nil)
	names := []string{"{a}b", "a{b}", "{}", "}", "{", "a{b", "{{a}}", "100%", "{a%7D%", "a}%", "plain"}
	for _, name := range names {
		r := request(name)
		acquireWithWaiter(t, s, c, r)
		if !strings.Contains(name, "}") && !strings.HasSuffix(name, "%") {
			has(t, c.Has(t, name), name)
		}
	}
	all, err := s.List(t.Context(), "")
	listed := []string{}
	for _, st := range all {
		listed = append(listed, st.Name)
	}
	slices.Sort(names)
	if err != nil || !slices.Equal(listed, names) {
		t.Errorf("list has %q, %v; want %q", listed, err, names)
	}
	if all, err := s.List(t.Context(), "{a}"); err != nil || len(all) != 1 || all[0].Name != "{a}b" {
		t.Errorf("list of {a} has %v, %v, want {a}b", all, err)
	}
}

// acquireWithWaiter acquires a lock, and makes a waiter queue for it and give up.
func acquireWithWaiter(t *testing.T, s *store.Store, c *redistest.Cluster, r store.Lease) {
	t.Helper()
	acquire(t, s, r)
	ctx, cancel := context.WithCancel(t.Context())
	done := waits(ctx, s, waiter(r.Name))
	eventually.True(t, "a waiter is in the queue", func() bool {
		st, err := s.Inspect(t.Context(), r.Name)
		return err == nil && len(st.Queue) == 1
	})
	cancel()
	if o := <-done; !errors.Is(o.err, context.Canceled) {
		t.Errorf("the wait for %q ended with %v, want %v", r.Name, o.err, context.Canceled)
	}
}

// A cluster refuses a class that it cannot give before it sends anything.
func TestClusterIsForEfficiency(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	s := openCluster(t, c.Masters, nil)
	if class := s.Caps().Class; class != store.Efficiency {
		t.Errorf("the class of a cluster is %v, want %v", class, store.Efficiency)
	}
	r := request("stock")
	r.Require = store.CrashSafe
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); !errors.Is(err, store.ErrUnsupported) {
		t.Errorf("acquire: %v, want %v", err, store.ErrUnsupported)
	}
	if _, err := s.Wait(t.Context(), store.WaitRequest{Lease: r}, nil); !errors.Is(err, store.ErrUnsupported) {
		t.Errorf("wait: %v, want %v", err, store.ErrUnsupported)
	}
	if keys := c.Has(t, "stock").Keys(t); len(keys) != 0 {
		t.Errorf("the server has the keys %q, want none", keys)
	}
}

// Settings that a cluster cannot support are refused, without echoing secrets.
func TestClusterURLs(t *testing.T) {
	for url, want := range map[string]string{
		"redis-cluster://a/1":                    "database",
		"redis-cluster://a?next=b":               "next",
		"redis-cluster://a?fsync=always":         "fsync",
		"redis-cluster://":                       "no host",
		"redis-cluster://a?color=red":            "color",
		"redis-cluster://u:secret@a?max_ttl=1ns": "maximum TTL",
	} {
		o := &redisstore.Options{NodeTimeout: time.Millisecond}
		_, err := redisstore.Open(t.Context(), url, o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want it to say %q", url, err, want)
		}
	}
	single := redistest.Start(t)
	_, err := redisstore.Open(t.Context(), "redis-cluster://"+single.Addr(), nil)
	if !errors.Is(err, store.ErrQuorum) || !strings.Contains(err.Error(), "redis://") {
		t.Errorf("a server that is in no cluster: %v, want an error that names redis://", err)
	}
	down := redistest.Start(t)
	down.Kill()
	if _, err := redisstore.Open(t.Context(), "redis-cluster://"+down.Addr(), nil); !errors.Is(err, store.ErrQuorum) {
		t.Errorf("a server that is down: %v, want %v", err, store.ErrQuorum)
	}
}
