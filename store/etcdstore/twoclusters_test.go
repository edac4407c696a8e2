package etcdstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// single starts a server that is a cluster of its own.
func single(t *testing.T, args ...string) *etcdtest.Member {
	return launch(t, etcdtest.Options{Args: args}).Members[0]
}

// A store is not opened if its endpoints are of different clusters: of two clients that begin
// with another endpoint, each would have the lock. The IDs of two clusters are equal if their
// servers were set up in the same way, such as with no settings at all.
func TestEndpointsOfTwoClusters(t *testing.T) {
	t.Parallel()
	same := []string{"--initial-advertise-peer-urls=http://localhost:2380", "--initial-cluster=m0=http://localhost:2380", "--initial-cluster-token=etcd-cluster"}
	for name, x := range map[string]struct {
		args []string
		why  string
	}{"IDs differ": {nil, "different clusters"}, "IDs are equal": {same, "clusters of their own"}} {
		t.Run(name, func(t *testing.T) {
			args := x.args
			one, other := single(t, args...).Addr, single(t, args...).Addr
			for range 4 { // the endpoint to begin with is chosen at random
				s, err := etcdstore.Open(t.Context(), urlOf(one, other), nil)
				if err == nil {
					s.Close()
					t.Fatal("opened a store with endpoints of two clusters")
				}
				if text := err.Error(); !errors.Is(err, store.ErrInvalid) || !strings.Contains(text, x.why) || !strings.Contains(text, one) || !strings.Contains(text, other) {
					t.Fatalf("open: %v, want an error that names both endpoints and matches store.ErrInvalid", err)
				}
			}
			e, err := etcdstore.Examine(t.Context(), urlOf(one, other), nil)
			if err != nil || e.Unusable == nil || !strings.Contains(e.Unusable.Error(), x.why) {
				t.Errorf("examine: %v, %v, want that the clusters differ", e.Unusable, err)
			}
		})
	}
}

// Two addresses of one server look like two servers that were set up in the same way.
func TestTwoEndpointsOfOneMember(t *testing.T) {
	m := server.Members[0]
	s, err := etcdstore.Open(t.Context(), urlOf(m.Addr, strings.Replace(m.Addr, "127.0.0.1", "localhost", 1)), nil)
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "name each member of one cluster once") {
		t.Errorf("open: %v, want that a member is named twice", err)
	}
}

// If a member of another cluster answers later, the store grants nothing. Leases that it has
// granted are renewed and released.
func TestMemberOfAnotherClusterComes(t *testing.T) {
	t.Parallel()
	one, other := single(t), single(t)
	other.Proxy.RefuseNew()
	s := open(t, []string{one.Addr, other.ProxyAddr()}, etcdstore.Options{})
	held := request("held", time.Minute)
	acquire(t, s, held)
	other.Proxy.Pass()
	l := request("a", time.Minute)
	l.Require = store.Consensus // so that the cluster is asked about itself
	var err error
	eventually.True(t, "the other cluster is noticed", func() bool {
		_, err = s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
		return err != nil && strings.Contains(err.Error(), "different clusters")
	})
	l.Require = 0
	var q *store.QuorumError
	if _, err = s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); !errors.As(err, &q) || q.Count(store.Quarantined) != 1 || !strings.Contains(err.Error(), "different clusters") {
		t.Errorf("acquire: %v, want a quarantine because of different clusters", err)
	}
	if err := s.Renew(t.Context(), []store.Lease{held})[0]; err != nil {
		t.Errorf("renew: %v", err)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
		t.Errorf("release: %v", err)
	}
}
