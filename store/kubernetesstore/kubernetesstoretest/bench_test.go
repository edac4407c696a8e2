//go:build !race

// As in native_test.go.

package kubernetesstoretest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/sidebyside"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/kubernetesstore"
)

// roundTrip is how long a network takes to an API server in the same region and back.
const roundTrip = 5 * time.Millisecond

// direct leads to the API server itself, without limits of the client, and counts requests. If it is
// away, it is a round trip away.
func (s *server) direct(b *testing.B, away bool, requests *atomic.Int64) *rest.Config {
	c := s.config()
	if s.api != nil {
		c = &rest.Config{Host: s.url(), BearerToken: admin, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	}
	if away {
		scheme, address, _ := strings.Cut(c.Host, "://")
		p := faultproxy.New(b, address)
		p.Delay(roundTrip / 2)
		c.Host = scheme + "://" + p.Addr()
	}
	c.QPS = -1
	c.WrapTransport = func(rt http.RoundTripper) http.RoundTripper { return counting{rt, requests} }
	return c
}

// counting counts requests.
type counting struct {
	http.RoundTripper
	n *atomic.Int64
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// WrappedRoundTripper lets client-go close its connections.
func (c counting) WrappedRoundTripper() http.RoundTripper { return c.RoundTripper }

// ways returns how to lock and unlock in one client by hand, and how here. Each goroutine has a lock
// of its own, unless they are to compete for one. If not, two updates of a Lease by hand are
// measured, too, since locks here are never deleted.
func ways(b *testing.B, srv *server, config *rest.Config, goroutines int, compete bool) []sidebyside.Way {
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	s := open(b, srv, kubernetesstore.Options{Config: config})
	c := leasehold.New(s, nil)
	leases, me := client.Leases(srv.namespace), "me"
	name := func(i int) string {
		if compete {
			return "one"
		}
		return fmt.Sprint("own-", i)
	}
	all := []sidebyside.Way{{Name: "by-hand", Do: func(i int) error {
		o := &v1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "hand-" + name(i)}, Spec: v1.LeaseSpec{HolderIdentity: &me}}
		for {
			_, err := leases.Create(b.Context(), o, metav1.CreateOptions{})
			if err == nil {
				return leases.Delete(b.Context(), o.Name, metav1.DeleteOptions{})
			}
			if !compete || !apierrors.IsAlreadyExists(err) {
				return err
			}
			time.Sleep(20 * time.Millisecond)
		}
	}}, {Name: "leasehold", Do: func(i int) error {
		if compete {
			l, err := c.Mutex(name(i)).Acquire(b.Context())
			if err != nil {
				return err
			}
			return l.Release(b.Context())
		}
		l := lease(name(i), time.Minute)
		if _, err := s.Acquire(b.Context(), store.AcquireRequest{Lease: l}); err != nil {
			return err
		}
		return s.Release(b.Context(), store.ReleaseRequest{Lease: l})
	}}}
	if compete {
		return all
	}
	updated := make([]*v1.Lease, goroutines)
	return append(all, sidebyside.Way{Name: "updates", Do: func(i int) (err error) {
		if updated[i] == nil {
			o := &v1.Lease{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("updated-", namespaces.Add(1))}}
			if updated[i], err = leases.Create(b.Context(), o, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		for _, holder := range []*string{&me, nil} {
			updated[i].Spec.HolderIdentity = holder // the API server writes nothing if nothing changes
			if updated[i], err = leases.Update(b.Context(), updated[i], metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		return nil
	}})
}

// BenchmarkLock compares a lock and its release with what people write by hand: a Lease that is
// created if there is none, and deleted. Each goroutine has a lock of its own, or all compete for one;
// one that locks by hand then asks again after 20 ms. The server is near, or a round trip away.
func BenchmarkLock(b *testing.B) {
	srv := start(b)
	for _, at := range []string{"near", "away"} {
		var requests atomic.Int64
		config := srv.direct(b, at == "away", &requests)
		sent := sidebyside.Cost{Unit: "requests", Total: func() float64 { return float64(requests.Load()) }}
		for _, goroutines := range []int{1, 64} {
			b.Run(fmt.Sprint(at, "/", goroutines), func(b *testing.B) {
				sidebyside.Measure(b, goroutines, ways(b, srv, config, goroutines, false), sent)
			})
		}
		b.Run(at+"/one-lock", func(b *testing.B) { sidebyside.Measure(b, 64, ways(b, srv, config, 64, true), sent) })
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
			b.ReportMetric(float64(n[http.MethodPut])/float64(b.N), "PUT/op")
		})
	}
}

func turn(ctx context.Context, s *store.Store) error {
	l := lease("one", time.Minute)
	_, err := s.Wait(ctx, store.WaitRequest{Lease: l}, nil)
	return errors.Join(err, s.Release(ctx, store.ReleaseRequest{Lease: l}))
}
