package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// benchStore returns a store on so many new servers.
func benchStore(b *testing.B, nodes int) *store.Store {
	b.Helper()
	var urls []string
	for _, s := range redistest.StartN(b, nodes) {
		urls = append(urls, s.URL())
	}
	s, err := redisstore.Open(context.Background(), strings.Join(urls, " "), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

// BenchmarkLockUnlock acquires and releases locks on one and on five nodes. Each goroutine
// has a lock of its own.
func BenchmarkLockUnlock(b *testing.B) {
	for _, nodes := range []int{1, 5} {
		s := benchStore(b, nodes)
		for _, goroutines := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("nodes=%d/goroutines=%d", nodes, goroutines), func(b *testing.B) {
				b.ReportAllocs()
				var wg sync.WaitGroup
				for g := range goroutines {
					wg.Go(func() {
						name := fmt.Sprint("bench/", g)
						for i := g; i < b.N; i += goroutines {
							r := store.Lease{Name: name, Owner: store.NewOwner(), Meta: `{"host":"h","pid":1}`, TTL: redisstore.DefaultMaxTTL / 2}
							if _, err := s.Acquire(context.Background(), store.AcquireRequest{Lease: r}); err != nil {
								b.Error(err)
								return
							}
							if err := s.Release(context.Background(), store.ReleaseRequest{Lease: r}); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}
