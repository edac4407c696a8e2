package leasehold_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// BenchmarkUncontended measures one Acquire and one Release of a lock that nobody else
// wants. The store is in memory, so this is about what the client itself costs.
func BenchmarkUncontended(b *testing.B) {
	acquireAndRelease(b, b.Context(), memstore.New(nil))
}

func acquireAndRelease(b *testing.B, ctx context.Context, s *store.Store) {
	lock := leasehold.New(s, nil).Mutex("bench")
	b.ReportAllocs()
	for b.Loop() {
		l, err := lock.Acquire(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Release(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNext measures a hand-off from one goroutine to the next of the same process, while
// all of them want the lock all the time.
func BenchmarkNext(b *testing.B) {
	for _, goroutines := range []int{2, 16, 256} {
		b.Run(fmt.Sprint("goroutines=", goroutines), func(b *testing.B) {
			lock := leasehold.New(memstore.New(nil), nil).Mutex("bench")
			ctx := b.Context()
			var wg sync.WaitGroup
			var last leasehold.Token
			b.ReportAllocs()
			b.ResetTimer()
			for g := range goroutines {
				wg.Go(func() {
					for i := g; i < b.N; i += goroutines {
						l, err := lock.Acquire(ctx)
						if err != nil {
							b.Error(err)
							return
						}
						if l.Token() <= last {
							b.Errorf("token %v, want more than the last one, %v", l.Token(), last)
						}
						last = l.Token()
						if err := l.Release(ctx); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
		})
	}
}

// handing is a store whose lock is busy for each attempt, and handed at once to each waiter.
type handing struct{ store.Engine }

func (h handing) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
	reason(errBusy)
	return h.Engine.Acquire(ctx, store.AcquireRequest(r))
}

func (h handing) Acquire(context.Context, store.AcquireRequest) (store.Grant, error) {
	return store.Grant{}, errBusy
}

var errBusy = &leasehold.BusyError{Name: "bench"}

// BenchmarkHanded measures one Acquire that has to queue, and one Release. The store hands
// the lock over at once, so this is what queueing costs the client.
func BenchmarkHanded(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	acquireAndRelease(b, ctx, store.New(handing{memstore.New(nil)}))
}
