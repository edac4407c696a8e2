package etcdstore_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// wrote reports whether a transaction has written, so that etcd's members had to agree on it.
func wrote(req *etcdserverpb.TxnRequest, reply *etcdserverpb.TxnResponse) bool {
	ops := req.Success
	if !reply.Succeeded {
		ops = req.Failure
	}
	for i, op := range ops {
		part := op.GetRequestTxn()
		if op.GetRequestPut() != nil || op.GetRequestDeleteRange() != nil || part != nil && wrote(part, reply.Responses[i].GetResponseTxn()) {
			return true
		}
	}
	return false
}

// Waiters for permits get them one after the other, each in one transaction that writes:
// that in which the holder before leaves. Nobody looks by itself.
func TestPermitsChangeHandsInOneCommit(t *testing.T) {
	const turns = 10
	prefix := "hands-" + rand.Text()
	var writes atomic.Pointer[atomic.Int32]
	writes.Store(new(atomic.Int32))
	count := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
		txn, ok := req.(*etcdserverpb.TxnRequest)
		if !ok {
			return invoke(ctx, method, req, reply, cc, o...)
		}
		n := writes.Load()
		n.Add(1) // before the next waiter can know of it
		err := invoke(ctx, method, req, reply, cc, o...)
		if err == nil && !wrote(txn, reply.(*etcdserverpb.TxnResponse)) {
			n.Add(-1)
		}
		return err
	})
	var stores []*store.Store
	for range 2 {
		s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, MaxTTL: time.Hour, Timeout: patience, DialOptions: []grpc.DialOption{count}})
		etcdstore.TrustInbox(s)
		stores = append(stores, s)
	}
	permit := func() store.Lease { return as(request("a", time.Hour), store.Semaphore(2), 1) }
	stays := permit()
	acquire(t, stores[0], stays)
	// The first to leave does not know of the waiters, and may still tell one of them what it
	// has seen by itself. That is not counted.
	leaves, first := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, MaxTTL: time.Hour}), permit()
	acquire(t, leaves, first)
	type waiter struct {
		store *store.Store
		lease store.Lease
		done  <-chan error
	}
	var queue []waiter
	for i := range turns + 1 {
		w := waiter{store: stores[i%2], lease: permit()}
		w.done = waits(t, w.store, w.lease)
		queue = append(queue, w)
	}
	release(t, leaves, first)
	gets(t, "the first waiter", queue[0].done)
	counted := new(atomic.Int32)
	writes.Store(counted)
	for i, w := range queue[:turns] {
		release(t, w.store, w.lease)
		gets(t, "the next waiter", queue[i+1].done)
	}
	eventually.True(t, fmt.Sprintf("%d transactions have written for %d turns", turns, turns), func() bool { return counted.Load() == turns })
	if err := stores[0].Renew(t.Context(), []store.Lease{stays})[0]; err != nil {
		t.Error(err)
	}
}

// Holders of permits that leave with the same view of the lock let in as many waiters, each
// with a slot of its own. Nobody looks by itself.
func TestPermitsReleasedTogether(t *testing.T) {
	const permits = 4
	prefix := "together-" + rand.Text()
	var leaving atomic.Int32
	all := make(chan struct{})
	together := intercept(func(req *etcdserverpb.TxnRequest, invoke func() error) error {
		for _, op := range req.Success {
			if strings.HasPrefix(string(op.GetRequestDeleteRange().GetKey()), prefix+"/a/") {
				if leaving.Add(1) == permits {
					close(all)
				}
				<-all
				break
			}
		}
		return invoke()
	})
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, MaxTTL: time.Hour, Timeout: patience, DialOptions: []grpc.DialOption{together.option()}})
	other := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, MaxTTL: time.Hour})
	etcdstore.TrustInbox(other)
	permit := func() store.Lease { return as(request("a", time.Hour), store.Semaphore(permits), 1) }
	var held, next []store.Lease
	for range permits {
		held, next = append(held, permit()), append(next, permit())
		acquire(t, s, held[len(held)-1])
	}
	var done []<-chan error
	for _, l := range next {
		done = append(done, waits(t, other, l))
	}
	var group sync.WaitGroup
	for _, l := range held {
		group.Go(func() { // the owner's name is enough, and then the lock is read
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: store.Lease{Name: "a", Owner: l.Owner, Kind: l.Kind, Attempt: "a", TTL: time.Minute}}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, d := range done {
		gets(t, "a waiter after the holders have left", d)
	}
	st, err := other.Inspect(t.Context(), "a")
	if err != nil || len(st.Holders) != permits {
		t.Fatalf("%+v, %v", st, err)
	}
	slots := make(map[int64]bool)
	for _, h := range st.Holders {
		slots[h.Slot] = true
	}
	if len(slots) != permits {
		t.Errorf("slots %v of %d holders", slots, permits)
	}
	for i, err := range other.Renew(t.Context(), next) {
		if err != nil {
			t.Errorf("renewal %d: %v", i, err)
		}
	}
}
