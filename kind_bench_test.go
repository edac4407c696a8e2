package leasehold_test

import (
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// BenchmarkKinds measures one Acquire and one Release of a lock of each kind, which nobody
// else wants.
func BenchmarkKinds(b *testing.B) {
	c := leasehold.New(memstore.New(nil), nil)
	for _, k := range []struct {
		name string
		lock *leasehold.Lock
	}{{"mutex", c.Mutex("m")}, {"reader", c.RW("rw").Read()}, {"writer", c.RW("rw").Write()}, {"permit", c.Semaphore("s", 8)}} {
		b.Run(k.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l, err := k.lock.Acquire(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				if err := l.Release(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWorkers compares a semaphore of 8 with a mutex. 16 goroutines of two processes
// want it all the time, and hold it for 5 ms each.
func BenchmarkWorkers(b *testing.B) {
	s := memstore.New(nil)
	clients := []*leasehold.Client{leasehold.New(s, nil), leasehold.New(s, nil)}
	for name, lock := range map[string]func(*leasehold.Client) *leasehold.Lock{
		"mutex":     func(c *leasehold.Client) *leasehold.Lock { return c.Mutex("m") },
		"semaphore": func(c *leasehold.Client) *leasehold.Lock { return c.Semaphore("s", 8) },
	} {
		b.Run(name, func(b *testing.B) {
			const goroutines = 16
			var wg sync.WaitGroup
			for g := range goroutines {
				l := lock(clients[g%2])
				wg.Go(func() {
					for i := g; i < b.N; i += goroutines {
						lease, err := l.Acquire(b.Context())
						if err != nil {
							b.Error(err)
							return
						}
						time.Sleep(5 * time.Millisecond)
						if err := lease.Release(b.Context()); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
		})
	}
}
