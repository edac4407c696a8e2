package objectstest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/sidebyside"
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

// roundTrip is how long a network takes to a server of objects and back, with the time that the server
// needs: Amazon says that small objects take 100 to 200 ms.
const roundTrip = 100 * time.Millisecond

// away returns the URL of a server's door as it is from elsewhere.
func (s *Server) away(b *testing.B) string {
	p := faultproxy.New(b, strings.TrimPrefix(s.URL, "http://"))
	p.Delay(roundTrip / 2)
	return "http://" + p.Addr()
}

// requests is how many the door has seen.
func (s *Server) requests() []sidebyside.Cost {
	reads, all := 0, 0
	total := func(n *int) func() float64 {
		return func() float64 {
			for method, taken := range s.Taken() {
				if all += taken; method == http.MethodGet {
					reads += taken
				}
			}
			return float64(*n)
		}
	}
	return []sidebyside.Cost{{Unit: "requests", Total: total(&all)}, {Unit: "reads", Total: total(&reads)}}
}

// BenchmarkLock compares a lock and its release with what people write by hand: an object that is
// created if there is none, and deleted; and with two updates of an object, since locks here are
// never deleted. Each goroutine has a lock of its own. The server is near, or a round trip away, where a
// door counts requests. server-ms/op is the time that processors work for the server's process, and
// client-ms/op for this one, which may be the same.
func (k Kind) BenchmarkLock(b *testing.B) {
	srv := k.Start(b, false)
	near := []sidebyside.Cost{
		{Unit: "client-ms", Total: func() float64 { return float64(load.CPUTime()) / float64(time.Millisecond) }},
		{Unit: "server-ms", Total: func() float64 { return float64(srv.worked()) / float64(time.Millisecond) }},
	}
	for _, at := range []struct {
		name, url string
		costs     []sidebyside.Cost
	}{{"near", srv.Direct, near}, {"away", srv.away(b), srv.requests()}} {
		hand, s := k.ByHand(b, at.url), k.Store(b, at.url, Options{})
		for _, goroutines := range []int{1, 64} {
			versions, run := make([]string, goroutines), rand.Text()
			ways := []sidebyside.Way{{Name: "by-hand", Do: func(i int) error {
				name := fmt.Sprint("hand/", i)
				if _, err := hand.Write(b.Context(), name, ""); err != nil {
					return err
				}
				return hand.Delete(b.Context(), name)
			}}, {Name: "updates", Do: func(i int) error {
				for range 2 {
					next, err := hand.Write(b.Context(), fmt.Sprint("updated", run, "/", i), versions[i])
					if err != nil {
						return err
					}
					versions[i] = next
				}
				return nil
			}}, {Name: "leasehold", Do: func(i int) error {
				l := Lease(fmt.Sprint("own ", i), time.Minute)
				if _, err := s.Acquire(b.Context(), store.AcquireRequest{Lease: l}); err != nil {
					return err
				}
				return s.Release(b.Context(), store.ReleaseRequest{Lease: l})
			}}}
			b.Run(fmt.Sprint(at.name, "/", goroutines), func(b *testing.B) { sidebyside.Measure(b, goroutines, ways, at.costs...) })
		}
	}
}

// BenchmarkOneLock has goroutines of one client compete for one lock. One that locks by hand asks
// again after a round trip.
func (k Kind) BenchmarkOneLock(b *testing.B) {
	srv := k.Start(b, false)
	url := srv.away(b)
	hand, c := k.ByHand(b, url), leasehold.New(k.Store(b, url, Options{Poll: time.Second}), nil)
	for _, goroutines := range []int{2, 64} {
		ways := []sidebyside.Way{{Name: "by-hand", Do: func(int) error {
			for {
				if _, err := hand.Write(b.Context(), "hand/one", ""); err == nil {
					return hand.Delete(b.Context(), "hand/one")
				}
				time.Sleep(roundTrip)
			}
		}}, {Name: "leasehold", Do: func(int) error {
			l, err := c.Mutex("one").Acquire(b.Context())
			if err != nil {
				return err
			}
			return l.Release(b.Context())
		}}}
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) { sidebyside.Measure(b, goroutines, ways, srv.requests()...) })
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
