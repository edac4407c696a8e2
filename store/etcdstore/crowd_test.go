package etcdstore_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// Five hundred waiters of one lock wait quietly: they refresh their places and read nothing that grows
// with the queue, no request takes so long that another member is asked, and the holder keeps its lease.
// The lock is handed on among them, also by those that are far back and give up.
func TestManyWaitersOfOneLock(t *testing.T) {
	t.Parallel()
	const stores, each = 4, 125
	c := launch(t, etcdtest.Options{})
	var keys, refreshed, requests atomic.Int64
	count := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, o...)
		requests.Add(1)
		r, ok := reply.(*etcdserverpb.TxnResponse)
		if !ok || err != nil {
			return err
		}
		for _, one := range r.Responses {
			if got := one.GetResponseRange(); got != nil {
				keys.Add(int64(len(got.Kvs)))
				refreshed.Add(1)
			}
		}
		return err
	})
	holder := open(t, c.Endpoints(), etcdstore.Options{})
	held := request("a", 10*time.Minute) // it is renewed once all wait
	acquire(t, holder, held)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var waiting, ended atomic.Int64
	granted := make(chan func() error, stores*each)
	var group sync.WaitGroup
	for range stores {
		s := open(t, c.Endpoints(), etcdstore.Options{Timeout: patience, DialOptions: []grpc.DialOption{count}})
		for range each {
			group.Go(func() {
				l := request("a", 20*time.Second) // 500 places are refreshed in a third of it, on a busy machine, too
				var once sync.Once
				_, err := s.Wait(ctx, store.WaitRequest{Lease: l}, func(error) { once.Do(func() { waiting.Add(1) }) })
				if err != nil {
					ended.Add(1)
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				granted <- func() error { return s.Release(t.Context(), store.ReleaseRequest{Lease: l}) }
			})
		}
	}
	start := time.Now()
	eventually.True(t, "all wait", func() bool { return waiting.Load() == stores*each })
	t.Logf("all wait after %v", time.Since(start))
	renewed(t, "the holder", holder, []store.Lease{held})
	eventually.True(t, "the waiters only refresh their places", func() bool {
		began, had, sent, start := refreshed.Load(), keys.Load(), requests.Load(), time.Now()
		eventually.True(t, "the waiters refresh their places", func() bool { return refreshed.Load() > began+stores*each })
		n, read := refreshed.Load()-began, keys.Load()-had
		t.Logf("%d reads in %v, of %d keys in %d requests", n, time.Since(start), read, requests.Load()-sent)
		return read < n+n/2
	})
	renewed(t, "the holder", holder, []store.Lease{held})
	release(t, holder, held)
	for range 20 {
		if err := (<-granted)(); err != nil {
			t.Error(err)
		}
	}
	last := <-granted
	start = time.Now()
	cancel()
	group.Wait()
	if err := last(); err != nil && !errors.Is(err, store.ErrNotHeld) { // its lease may be over by then
		t.Error(err)
	}
	t.Logf("%d gave up in %v", ended.Load(), time.Since(start))
	acquireSoon(t, holder, request("a", time.Minute))
}

// acquireSoon acquires a lock that waiters may still leave.
func acquireSoon(t *testing.T, s *store.Store, l store.Lease) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := s.Wait(ctx, store.WaitRequest{Lease: l}, nil); err != nil {
		t.Fatal(err)
	}
}
