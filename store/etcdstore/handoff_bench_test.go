package etcdstore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// BenchmarkHandOff passes one lock, or one permit, among stores that all wait for it.
func BenchmarkHandOff(b *testing.B) {
	for _, members := range []int{1, 3} {
		c := server
		if members > 1 {
			program, err := etcdtest.Installed()
			if err == nil {
				c, err = etcdtest.Launch(etcdtest.Options{Program: program, Members: members})
			}
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
		}
		for _, kind := range []store.Kind{{}, store.Semaphore(2)} {
			for _, n := range []int{2, 8} {
				b.Run(fmt.Sprintf("members=%d/kind=%v/stores=%d", members, kind, n), func(b *testing.B) { handOff(b, c.Endpoints(), kind, n) })
			}
		}
	}
}

func handOff(b *testing.B, endpoints []string, kind store.Kind, n int) {
	prefix := fmt.Sprint("handoff-", time.Now().UnixNano())
	var stores []*store.Store
	for range n {
		s, err := etcdstore.Open(b.Context(), urlOf(endpoints...), &etcdstore.Options{Prefix: prefix})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		stores = append(stores, s)
	}
	var group sync.WaitGroup
	b.ResetTimer()
	for i, s := range stores {
		group.Go(func() {
			for range (b.N + i) / n {
				l := as(request("a", 10*time.Second), kind, kind.Normal().Limit)
				_, err := s.Wait(b.Context(), store.WaitRequest{Lease: l}, nil)
				if err == nil {
					err = s.Release(b.Context(), store.ReleaseRequest{Lease: l})
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}
