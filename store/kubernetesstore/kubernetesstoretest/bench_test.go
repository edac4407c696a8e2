//go:build !race

// As in native_test.go.

package kubernetesstoretest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/kubernetesstore"
)

// direct leads to the API server itself, without limits of the client.
func (s *server) direct() *rest.Config {
	c := s.config()
	if s.api != nil {
		c = &rest.Config{Host: s.url(), BearerToken: admin, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	}
	c.QPS = -1
	return c
}

// BenchmarkLock compares a lock and its release with what people write by hand: a Lease that is
// created if there is none, and deleted. Each goroutine has a lock of its own.
func BenchmarkLock(b *testing.B) {
	srv := start(b)
	s := open(b, srv, kubernetesstore.Options{Config: srv.direct()})
	client, err := coordinationv1.NewForConfig(srv.direct())
	if err != nil {
		b.Fatal(err)
	}
	leases := client.Leases(srv.namespace)
	me := "me"
	for _, goroutines := range []int{1, 64} {
		run := func(name string, lock func(i int) error) {
			b.Run(fmt.Sprintf("%s/%d", name, goroutines), func(b *testing.B) {
				var wg sync.WaitGroup
				for i := range goroutines {
					wg.Go(func() {
						for range (b.N + goroutines - 1 - i) / goroutines {
							if err := lock(i); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			})
		}
		run("by-hand", func(i int) error {
			name := fmt.Sprint("hand-", i)
			_, err := leases.Create(b.Context(), &v1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.LeaseSpec{HolderIdentity: &me}}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			return leases.Delete(b.Context(), name, metav1.DeleteOptions{})
		})
		run("leasehold", func(i int) error {
			l := lease(fmt.Sprint("own-", i), time.Minute)
			if _, err := s.Acquire(b.Context(), store.AcquireRequest{Lease: l}); err != nil {
				return err
			}
			return s.Release(b.Context(), store.ReleaseRequest{Lease: l})
		})
	}
}

// BenchmarkHandOff has clients pass one lock among them, and tells how many requests a turn took.
func BenchmarkHandOff(b *testing.B) {
	srv := start(b)
	for _, clients := range []int{2, 16} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			var stores []*store.Store
			for range clients {
				stores = append(stores, open(b, srv, kubernetesstore.Options{}))
			}
			srv.Taken()
			b.ResetTimer()
			var wg sync.WaitGroup
			for i, s := range stores {
				wg.Go(func() {
					for range (b.N + clients - 1 - i) / clients {
						if err := turn(b.Context(), s); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			n := srv.Taken()
			b.ReportMetric(float64(n[http.MethodGet])/float64(b.N), "GET/op")
			b.ReportMetric(float64(n[http.MethodPatch])/float64(b.N), "PATCH/op")
		})
	}
}

func turn(ctx context.Context, s *store.Store) error {
	l := lease("one", time.Minute)
	_, err := s.Wait(ctx, store.WaitRequest{Lease: l}, nil)
	return errors.Join(err, s.Release(ctx, store.ReleaseRequest{Lease: l}))
}
