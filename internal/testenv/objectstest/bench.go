package objectstest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// turns has goroutines do b.N things, and returns the first error.
func turns(b *testing.B, goroutines int, do func(i int) error) {
	b.Helper()
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			for range (b.N + goroutines - 1 - i) / goroutines {
				if err := do(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
}

// BenchmarkLock compares a lock and its release with what people write by hand: an object that is
// created if there is none, and deleted; and with two updates of an object, since locks here are
// never deleted. Each goroutine has a lock of its own. server-ms/op is the time that processors work
// for the server's process, which may be this one.
func (k Kind) BenchmarkLock(b *testing.B) {
	srv := k.Start(b, false)
	hand, s := k.ByHand(b, srv.Direct), k.Store(b, srv.Direct, Options{})
	for _, goroutines := range []int{1, 64} {
		run := func(name string, lock func(i int) error) {
			b.Run(fmt.Sprintf("%s/%d", name, goroutines), func(b *testing.B) {
				before := srv.worked()
				turns(b, goroutines, lock)
				if after := srv.worked(); after > before {
					b.ReportMetric(float64(after-before)/float64(time.Millisecond)/float64(b.N), "server-ms/op")
				}
			})
		}
		run("by-hand", func(i int) error {
			name := fmt.Sprint("hand/", i)
			if _, err := hand.Write(b.Context(), name, ""); err != nil {
				return err
			}
			return hand.Delete(b.Context(), name)
		})
		versions, run2 := make([]string, goroutines), rand.Text()
		run("updates-by-hand", func(i int) error {
			for range 2 {
				next, err := hand.Write(b.Context(), fmt.Sprint("updated", run2, "/", i), versions[i])
				if err != nil {
					return err
				}
				versions[i] = next
			}
			return nil
		})
		run("leasehold", func(i int) error {
			l := Lease(fmt.Sprint("own ", i), time.Minute)
			if _, err := s.Acquire(b.Context(), store.AcquireRequest{Lease: l}); err != nil {
				return err
			}
			return s.Release(b.Context(), store.ReleaseRequest{Lease: l})
		})
	}
}

// BenchmarkHandOff has clients pass one lock among them, and tells how many requests a turn took.
// A lock by hand is asked for again every 20 ms, which is also the clients' Poll.
func (k Kind) BenchmarkHandOff(b *testing.B) {
	srv := k.Start(b, false)
	for _, clients := range []int{2, 16} {
		run := func(name string, client func() func(ctx context.Context) error) {
			b.Run(fmt.Sprintf("%s/%d", name, clients), func(b *testing.B) {
				var locks []func(ctx context.Context) error
				for range clients {
					locks = append(locks, client())
				}
				srv.Taken()
				turns(b, clients, func(i int) error { return locks[i](b.Context()) })
				n := srv.Taken()
				b.ReportMetric(float64(n[http.MethodGet])/float64(b.N), "reads/op")
				b.ReportMetric(float64(n[k.Method]+n[http.MethodDelete])/float64(b.N), "writes/op")
			})
		}
		run("by-hand", func() func(ctx context.Context) error {
			hand := k.ByHand(b, srv.URL)
			return func(ctx context.Context) error {
				for {
					if _, err := hand.Write(ctx, "hand/one", ""); err == nil {
						return hand.Delete(ctx, "hand/one")
					}
					time.Sleep(20 * time.Millisecond)
				}
			}
		})
		run("leasehold", func() func(ctx context.Context) error {
			s := k.Store(b, srv.URL, Options{})
			return func(ctx context.Context) error {
				l := Lease("one", time.Minute)
				if _, err := s.Wait(ctx, store.WaitRequest{Lease: l}, nil); err != nil {
					return err
				}
				return s.Release(ctx, store.ReleaseRequest{Lease: l})
			}
		})
	}
}
