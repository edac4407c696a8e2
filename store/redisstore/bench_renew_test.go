package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// BenchmarkRenew renews some leases at once, on one and on five nodes. It reports the time
// for one lease.
func BenchmarkRenew(b *testing.B) {
	for _, nodes := range []int{1, 5} {
		s := benchStore(b, nodes)
		for _, n := range []int{1, 8, 64, 512} {
			b.Run(fmt.Sprintf("nodes=%d/leases=%d", nodes, n), func(b *testing.B) {
				b.ReportAllocs()
				leases := make([]store.Lease, n)
				for i := range leases {
					leases[i] = store.Lease{Name: "bench/" + strconv.Itoa(i), Owner: store.NewOwner(), Meta: `{"host":"h","pid":1}`, TTL: redisstore.DefaultMaxTTL / 2}
					if _, err := s.Acquire(context.Background(), store.AcquireRequest{Lease: leases[i]}); err != nil {
						b.Fatal(err)
					}
				}
				b.ResetTimer()
				for i := 0; i < b.N; i += n {
					for _, err := range s.Renew(context.Background(), leases) {
						if err != nil {
							b.Fatal(err)
						}
					}
				}
				b.StopTimer()
				for _, r := range leases {
					if err := s.Release(context.Background(), store.ReleaseRequest{Lease: r}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
