package etcdstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

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
	for name, args := range map[string][]string{"IDs differ": nil, "IDs are equal": same} {
		t.Run(name, func(t *testing.T) {
			one, other := single(t, args...).Addr, single(t, args...).Addr
			for range 4 { // the endpoint to begin with is chosen at random
				s, err := etcdstore.Open(t.Context(), urlOf(one, other), nil)
				if err == nil {
					s.Close()
					t.Fatal("opened a store with endpoints of two clusters")
				}
				if text := err.Error(); !errors.Is(err, store.ErrInvalid) || !strings.Contains(text, "different clusters") || !strings.Contains(text, one) || !strings.Contains(text, other) {
					t.Fatalf("open: %v, want an error that names both endpoints and matches store.ErrInvalid", err)
				}
			}
			e, err := etcdstore.Examine(t.Context(), urlOf(one, other), nil)
			if err != nil || e.Unusable == nil || !strings.Contains(e.Unusable.Error(), "different clusters") {
				t.Errorf("examine: %v, %v, want that the clusters differ", e.Unusable, err)
			}
		})
	}
}

// Two addresses of one server are no two clusters.
func TestTwoEndpointsOfOneMember(t *testing.T) {
	m := server.Members[0]
	open(t, []string{m.Addr, strings.Replace(m.Addr, "127.0.0.1", "localhost", 1)}, etcdstore.Options{})
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

// A leader that was cut off answers for a while as if it still led: it knows no leases that its
// successor has granted. It is still a member of the cluster.
func TestCutOffLeaderIsNoOtherCluster(t *testing.T) {
	t.Parallel()
	c := three(t)
	cut := c.Endpoints()[0]
	behind := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
		if !strings.Contains(cc.Target(), cut) {
			return invoke(ctx, method, req, reply, cc, o...)
		}
		switch r := reply.(type) {
		case *etcdserverpb.StatusResponse:
			err := invoke(ctx, method, req, reply, cc, o...)
			r.Leader = r.Header.MemberId
			return err
		case *etcdserverpb.LeaseTimeToLiveResponse:
			r.TTL = -1
			return nil
		}
		return status.FromContextError(context.DeadlineExceeded).Err()
	})
	for range 4 { // the endpoint to begin with is chosen at random
		open(t, c.Endpoints(), etcdstore.Options{Timeout: patience, DialOptions: []grpc.DialOption{behind}})
	}
}
