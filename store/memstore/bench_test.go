package memstore

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// BenchmarkHandOn measures a hand-off: each waiter releases the lock and waits again.
func BenchmarkHandOn(b *testing.B) {
	for _, waiters := range []int{1, 2, 16, 128} {
		b.Run(strconv.Itoa(waiters), func(b *testing.B) {
			s := New(nil)
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			for range waiters {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						r := request(time.Minute)
						if _, err := s.Wait(b.Context(), r, nil); err != nil {
							b.Error(err)
							return
						}
						if err := s.Release(b.Context(), store.ReleaseRequest{Lease: r.Lease}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}
