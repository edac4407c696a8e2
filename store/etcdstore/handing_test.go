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
	clientv3 "go.etcd.io/etcd/client/v3"
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

// Waiters get permits one after the other. Each hand-off takes one transaction that writes: the
// release of the holder before. No waiter looks by itself.
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

// A holder to which the lock has come, and behind which nobody waits, releases it in one request, also if
// it entered by itself.
func TestReleaseAfterAHandOffIsOneRequest(t *testing.T) {
	client := native(t, server.Endpoints())
	for how, leave := range map[string]func(s *store.Store, l store.Lease, prefix string){
		"released": func(s *store.Store, l store.Lease, _ string) { release(t, s, l) },
		"deleted": func(_ *store.Store, _ store.Lease, prefix string) {
			r, err := client.Get(t.Context(), prefix+"/a/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
			if err == nil {
				_, err = client.Delete(t.Context(), string(r.Kvs[0].Key))
			}
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(how, func(t *testing.T) {
			var requests atomic.Int64
			count := intercept(func(_ *etcdserverpb.TxnRequest, invoke func() error) error {
				requests.Add(1)
				return invoke()
			})
			prefix := "one-request-" + rand.Text()
			holder := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, Timeout: patience})
			s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, Timeout: patience, MaxTTL: time.Hour, DialOptions: []grpc.DialOption{count.option()}})
			held, l := request("a", time.Minute), request("a", time.Minute)
			acquire(t, holder, held)
			done := waits(t, s, l)
			leave(holder, held, prefix)
			gets(t, "the waiter", done)
			before := requests.Load()
			release(t, s, l)
			if n := requests.Load() - before; n != 1 {
				t.Errorf("%d requests to release, want 1", n)
			}
		})
	}
}
