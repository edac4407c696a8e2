package etcdstore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// BenchmarkBesideMutex acquires and releases locks of which each goroutine has its own, in
// turns of a batch with the store and a batch with concurrency.Mutex, so that the load of
// the machine meets both. It reports how many operations a second the store makes, as a
// part of those of concurrency.Mutex.
func BenchmarkBesideMutex(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, err := etcdstore.Open(b.Context(), urlOf(server.Endpoints()...), &etcdstore.Options{Prefix: "bench"})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			client, err := clientv3.New(clientv3.Config{Endpoints: server.Endpoints(), Logger: zap.NewNop()})
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()
			session, err := concurrency.NewSession(client, concurrency.WithTTL(10))
			if err != nil {
				b.Fatal(err)
			}
			defer session.Close()
			var ours, theirs []func() error
			for g := range n {
				ours = append(ours, func() error {
					l := request(fmt.Sprint(g), 10*time.Second)
					if _, err := s.Acquire(b.Context(), store.AcquireRequest{Lease: l}); err != nil {
						return err
					}
					return s.Release(b.Context(), store.ReleaseRequest{Lease: l})
				})
				m := concurrency.NewMutex(session, fmt.Sprintf("bench-native/%d", g))
				theirs = append(theirs, func() error {
					if err := m.Lock(b.Context()); err != nil {
						return err
					}
					return m.Unlock(b.Context())
				})
			}
			var took [2]time.Duration
			for i := 0; b.Loop(); i++ {
				for j := range took { // each is first in half of the turns
					which := (i + j) % 2
					took[which] += batch(b, [][]func() error{ours, theirs}[which])
				}
			}
			b.ReportMetric(float64(took[1])/float64(took[0]), "of-native")
		})
	}
}

// batch makes 64 turns in all, and returns how long they took.
func batch(b *testing.B, turns []func() error) time.Duration {
	start := time.Now()
	var group sync.WaitGroup
	for _, turn := range turns {
		group.Go(func() {
			for range 64 / len(turns) {
				if err := turn(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	return time.Since(start)
}
