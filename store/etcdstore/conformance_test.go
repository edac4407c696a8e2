package etcdstore_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

// urlOf returns the URL of a cluster with these endpoints.
func urlOf(endpoints ...string) string { return "etcd://" + strings.Join(endpoints, ",") }

// open opens a store for locks of the test's own.
func open(t *testing.T, endpoints []string, o etcdstore.Options) *store.Store {
	t.Helper()
	s, err := etcdstore.Open(t.Context(), urlOf(endpoints...), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// The store keeps the contract of package store, between two processes.
func TestEtcdConforms(t *testing.T) {
	t.Parallel()
	prefix := "conformance-" + rand.Text()
	one := func(t *testing.T) *store.Store {
		return open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, Timeout: patience})
	}
	storetest.Run(t, one, storetest.Options{Second: one})
}

// Each verb meets each fault.
func TestFaults(t *testing.T) {
	o := etcdstore.Options{Prefix: "faults-" + rand.Text(), Timeout: patience}
	storetest.RunFaults(t, func(t *testing.T) (*store.Store, storetest.Link) {
		p := faultproxy.New(t, server.Members[0].Addr)
		return open(t, []string{p.Addr()}, o), p
	}, storetest.Options{Second: func(t *testing.T) *store.Store { return open(t, server.Endpoints(), o) }})
}
