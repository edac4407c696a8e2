package etcdstore_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// placeOf reads the place of an owner.
func placeOf(t *testing.T, client *clientv3.Client, prefix string, l store.Lease) (suffix, process string, create int64, id clientv3.LeaseID) {
	t.Helper()
	at := prefix + "/" + l.Name + "/"
	r, err := client.Get(t.Context(), at, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range r.Kvs {
		var is struct{ Owner, Process string }
		if json.Unmarshal(kv.Value, &is) == nil && is.Owner == l.Owner {
			return strings.TrimPrefix(string(kv.Key), at), is.Process, kv.CreateRevision, clientv3.LeaseID(kv.Lease)
		}
	}
	t.Fatalf("the owner has no place among %d", len(r.Kvs))
	return
}

// Any user that locks anything can write into every inbox. What is written there grants no lock: the
// waiter reads the lock, and goes on to wait. When its turn comes, it has a later token than all
// before, and a slot that there is.
func TestMessageGrantsNothing(t *testing.T) {
	for _, kind := range []store.Kind{{}, store.Semaphore(2), store.ReadWrite} {
		for _, shares := range []bool{false, true} {
			if shares && !kind.Shared {
				continue
			}
			t.Run(fmt.Sprint(kind, shares), func(t *testing.T) {
				t.Parallel()
				prefix := "hint-" + rand.Text()
				client := native(t, server.Endpoints())
				all := as(request("a", time.Minute), kind, kind.Normal().Limit)
				if kind.IsMutex() {
					all = request("a", time.Minute)
				}
				held := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
				acquire(t, held, all)
				var asked atomic.Int64
				count := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
					err := invoke(ctx, method, req, reply, cc, o...)
					asked.Add(1)
					return err
				})
				waiter := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, DialOptions: []grpc.DialOption{count}})
				etcdstore.TrustInbox(waiter)
				l := all
				l.Owner = store.NewOwner()
				if shares {
					l.Weight = 1
				}
				type result struct {
					g   store.Grant
					err error
				}
				done, told := make(chan result, 1), make(chan struct{}, 1000)
				go func() {
					g, err := waiter.Wait(t.Context(), store.WaitRequest{Lease: l}, func(error) { told <- struct{}{} })
					done <- result{g, err}
				}()
				<-told
				suffix, process, create, id := placeOf(t, client, prefix, l)
				var last int64
				for _, m := range []string{`{"c":%d}`, `{"c":%d,"e":true,"s":1}`, `{"c":%d,"e":true}`, `{"c":%d,"t":true,"s":7}`, `{"c":%d,"n":[{"k":"1","c":1}],"w":true}`} {
					before := asked.Load()
					r, err := client.Put(t.Context(), prefix+"/!inbox/"+process+"/"+suffix, fmt.Sprintf(m, create), clientv3.WithLease(id))
					if err != nil {
						t.Fatal(err)
					}
					last = r.Header.Revision
					eventually.True(t, "the waiter reads the lock", func() bool { return asked.Load() > before || len(done) > 0 })
				}
				release(t, held, all)
				got := <-done
				if got.err != nil {
					t.Fatal(got.err)
				}
				if at := int64(got.g.Token); at <= last {
					t.Errorf("the waiter was granted the lock at revision %d, and it was held until after %d", at, last)
				}
				if most := kind.Normal().Limit; got.g.Slot >= most {
					t.Errorf("slot %d, want one below %d", got.g.Slot, most)
				}
				if err := waiter.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
					t.Errorf("renew: %v", err)
				}
			})
		}
	}
}

// A renewal is refused if the place does not own the lock, whatever the process thinks.
func TestRenewalOfAPlaceThatWaits(t *testing.T) {
	for _, kind := range []store.Kind{{}, store.Semaphore(2), store.ReadWrite} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			t.Parallel()
			prefix := "thinks-" + rand.Text()
			all := as(request("a", time.Minute), kind, kind.Normal().Limit)
			if kind.IsMutex() {
				all = request("a", time.Minute)
			}
			held := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
			acquire(t, held, all)
			waiter := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
			l := all
			l.Owner = store.NewOwner()
			waits(t, waiter, l)
			etcdstore.Believe(waiter, l)
			if err := waiter.Renew(t.Context(), []store.Lease{l})[0]; !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("renew a place that waits: %v, want %v", err, store.ErrNotHeld)
			}
		})
	}
}
