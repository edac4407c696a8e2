package natsstoretest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/sidebyside"
	"github.com/leasehold-dev/leasehold/store"
)

// keyValue opens a bucket for locks by hand.
func keyValue(b *testing.B, url string) jetstream.KeyValue {
	nc, err := nats.Connect(url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	kv, err := js.CreateOrUpdateKeyValue(b.Context(), jetstream.KeyValueConfig{Bucket: "hand", Storage: jetstream.FileStorage})
	if err != nil {
		b.Fatal(err)
	}
	return kv
}

// received returns how many messages the server has received.
func received(t testing.TB, srv *server.Server) int64 {
	v, err := srv.Varz(nil)
	if err != nil {
		t.Fatal(err)
	}
	return v.InMsgs
}

// share has goroutines do n operations, and tells how many messages one took.
func share(b *testing.B, srv *server.Server, goroutines int, do func(i int) error) {
	before := received(b, srv)
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
	b.ReportMetric(float64(received(b, srv)-before)/float64(b.N), "messages/op")
}

// roundTrip is how long a network takes to a server in the same region and back.
const roundTrip = 5 * time.Millisecond

// BenchmarkLock compares a lock and its release with what people write by hand: a key that is
// created if there is none, and deleted. Each goroutine has a lock of its own, or all compete for
// one; one that locks by hand then watches the key. The server is near, or a round trip away.
func BenchmarkLock(b *testing.B) {
	srv := start(b, server.Options{})
	p := faultproxy.New(b, strings.TrimPrefix(srv.ClientURL(), "nats://"))
	p.Delay(roundTrip / 2)
	messages := sidebyside.Cost{Unit: "messages", Total: func() float64 { return float64(received(b, srv)) }}
	for _, at := range []struct{ name, url string }{{"near", srv.ClientURL()}, {"away", "nats://" + p.Addr()}} {
		kv, s := keyValue(b, at.url), open(b, []string{at.url}, nil)
		ways := []sidebyside.Way{{Name: "by-hand", Do: func(i int) error {
			key := fmt.Sprint("own", i)
			if _, err := kv.Create(b.Context(), key, []byte("me")); err != nil {
				return err
			}
			return kv.Delete(b.Context(), key)
		}}, {Name: "leasehold", Do: func(i int) error {
			l := lease(fmt.Sprint("own ", i), time.Minute)
			if _, err := s.Acquire(b.Context(), store.AcquireRequest{Lease: l}); err != nil {
				return err
			}
			return s.Release(b.Context(), store.ReleaseRequest{Lease: l})
		}}}
		for _, goroutines := range []int{1, 64} {
			b.Run(fmt.Sprint(at.name, "/", goroutines), func(b *testing.B) { sidebyside.Measure(b, goroutines, ways, messages) })
		}
		c := leasehold.New(s, nil)
		ways = []sidebyside.Way{{Name: "by-hand", Do: func(int) error { return turnByHand(b.Context(), kv) }}, {Name: "leasehold", Do: func(int) error {
			l, err := c.Mutex("one").Acquire(b.Context())
			if err != nil {
				return err
			}
			return l.Release(b.Context())
		}}}
		b.Run(at.name+"/one-lock", func(b *testing.B) { sidebyside.Measure(b, 64, ways, messages) })
	}
}

// BenchmarkHandOff has clients pass one lock among them. A client with a lock by hand watches
// the key, and tries again when it is deleted.
func BenchmarkHandOff(b *testing.B) {
	srv := start(b, server.Options{})
	for _, clients := range []int{2, 16} {
		b.Run(fmt.Sprintf("by-hand/%d", clients), func(b *testing.B) {
			var kvs []jetstream.KeyValue
			for range clients {
				kvs = append(kvs, keyValue(b, srv.ClientURL()))
			}
			share(b, srv, clients, func(i int) error { return turnByHand(b.Context(), kvs[i]) })
		})
		b.Run(fmt.Sprintf("leasehold/%d", clients), func(b *testing.B) {
			var stores []store.Engine
			for range clients {
				stores = append(stores, open(b, []string{srv.ClientURL()}, nil))
			}
			share(b, srv, clients, func(i int) error {
				l := lease("one", time.Minute)
				if _, err := stores[i].Wait(b.Context(), store.WaitRequest{Lease: l}, nil); err != nil {
					return err
				}
				return stores[i].Release(b.Context(), store.ReleaseRequest{Lease: l})
			})
		})
	}
}

func turnByHand(ctx context.Context, kv jetstream.KeyValue) error {
	const key = "one"
	for {
		_, err := kv.Create(ctx, key, []byte("me"))
		if err == nil {
			return kv.Delete(ctx, key)
		}
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return err
		}
		w, err := kv.Watch(ctx, key)
		if err != nil {
			return err
		}
		for e := range w.Updates() {
			if e != nil && e.Operation() == jetstream.KeyValueDelete {
				break
			}
		}
		if err := w.Stop(); err != nil {
			return err
		}
	}
}
