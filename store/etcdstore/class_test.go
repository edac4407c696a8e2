package etcdstore_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// While the cluster cannot say what class it gives, such as during an election, the class is not lower:
// a lock that requires it is waited for. Once it was known, a leader that is missing changes nothing.
func TestClassThatIsNotKnownAtPresent(t *testing.T) {
	t.Parallel()
	c := three(t)
	var electing atomic.Bool
	electing.Store(true)
	during := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
		if _, ok := reply.(*etcdserverpb.MemberListResponse); ok && electing.Load() {
			return status.Error(codes.Unavailable, "etcdserver: no leader")
		}
		err := invoke(ctx, method, req, reply, cc, o...)
		if s, ok := reply.(*etcdserverpb.StatusResponse); ok && err == nil && electing.Load() {
			if s.Leader == s.Header.MemberId {
				return status.Error(codes.Unavailable, "the leader is gone")
			}
			s.Leader = 0
		}
		return err
	})
	var log bytes.Buffer
	s := open(t, c.Endpoints(), etcdstore.Options{DialOptions: []grpc.DialOption{during}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	l := request("a", time.Minute)
	l.Require = store.Consensus
	if class := s.Caps().Class; class != store.Consensus {
		t.Errorf("class %v, want %v, which it may be", class, store.Consensus)
	}
	var q *store.QuorumError
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); !errors.As(err, &q) || !q.Transient() || errors.Is(err, store.ErrUnsupported) {
		t.Errorf("acquire: %v, want a transient error", err)
	}
	done := waits(t, s, l)
	electing.Store(false)
	gets(t, "the waiter", done)
	release(t, s, l)
	electing.Store(true)
	etcdstore.ExamineNow(s, t.Context())
	l.Owner = store.NewOwner()
	acquire(t, s, l)
	release(t, s, l)
	s.Close()
	if strings.Contains(log.String(), "the class") {
		t.Errorf("a class that was not known at times is logged as another: %s", log.String())
	}
}
