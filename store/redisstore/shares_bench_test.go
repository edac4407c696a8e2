package redisstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// kindsOfLock are requests for a lock of each kind.
var kindsOfLock = map[string]store.Lease{
	"mutex":  {},
	"reader": {Kind: store.ReadWrite, Weight: 1},
	"writer": {Kind: store.ReadWrite, Weight: store.ReadWriteLimit},
	"permit": {Kind: store.Semaphore(8), Weight: 1},
}

// attempt is a request of a new attempt for the lock of that kind.
func attempt(kind string) store.Lease {
	r := kindsOfLock[kind]
	r.Name, r.Owner, r.Meta, r.TTL = "bench/"+kind, store.NewOwnerAt(time.Now()), `{"host":"h","pid":1}`, redisstore.DefaultMaxTTL/2
	return r
}

// BenchmarkKinds is one acquire and one release of a lock of each kind that nobody else wants.
func BenchmarkKinds(b *testing.B) {
	s := benchStore(b, 1)
	for kind := range kindsOfLock {
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				r := attempt(kind)
				if _, err := s.Acquire(b.Context(), store.AcquireRequest{Lease: r}); err != nil {
					b.Fatal(err)
				}
				if err := s.Release(b.Context(), store.ReleaseRequest{Lease: r}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWorkers is a semaphore of 8 and a mutex that 16 goroutines want all the time, and
// hold for 5 ms.
func BenchmarkWorkers(b *testing.B) {
	s := benchStore(b, 1)
	for _, kind := range []string{"mutex", "permit"} {
		b.Run(kind, func(b *testing.B) {
			const goroutines = 16
			var all sync.WaitGroup
			for g := range goroutines {
				all.Go(func() {
					for i := g; i < b.N; i += goroutines {
						r := attempt(kind)
						grant, err := s.Wait(context.Background(), store.WaitRequest{Lease: r}, nil)
						if err != nil {
							b.Error(err)
							return
						}
						time.Sleep(5 * time.Millisecond)
						r.Owner = grant.Owner
						if err := s.Release(context.Background(), store.ReleaseRequest{Lease: r, Renewed: grant.Repeated}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
		})
	}
}
