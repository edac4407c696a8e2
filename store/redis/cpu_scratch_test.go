package redis_test

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redis"
)

func self() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkCPU(b *testing.B) {
	for _, nodes := range []int{1, 5} {
		servers := redistest.StartN(b, nodes)
		var urls []string
		for _, s := range servers {
			urls = append(urls, s.URL())
		}
		s, err := redis.Open(context.Background(), urls, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		for _, goroutines := range []int{1, 16, 256} {
			b.Run(fmt.Sprintf("nodes=%d/goroutines=%d", nodes, goroutines), func(b *testing.B) {
				b.ReportAllocs()
				before := self()
				var wg sync.WaitGroup
				for g := range goroutines {
					wg.Go(func() {
						name := fmt.Sprint("bench/", g)
						for i := g; i < b.N; i += goroutines {
							r := store.Request{Name: name, Owner: store.NewOwner(), Meta: `{"host":"h","pid":1}`, TTL: redis.DefaultMaxTTL / 2}
							if _, err := s.Acquire(context.Background(), r); err != nil {
								b.Error(err)
								return
							}
							if err := s.Release(context.Background(), r); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64((self()-before).Nanoseconds())/1000/float64(b.N), "cpu-us/op")
			})
		}
	}
}

func BenchmarkClient(b *testing.B) {
	for _, nodes := range []int{1, 5} {
		servers := redistest.StartN(b, nodes)
		var urls []string
		for _, s := range servers {
			urls = append(urls, s.URL())
		}
		s, err := redis.Open(context.Background(), urls, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		c := leasehold.New(s, nil)
		for _, goroutines := range []int{1, 256} {
			b.Run(fmt.Sprintf("nodes=%d/goroutines=%d", nodes, goroutines), func(b *testing.B) {
				b.ReportAllocs()
				before := self()
				var wg sync.WaitGroup
				for g := range goroutines {
					wg.Go(func() {
						l := c.Mutex(fmt.Sprint("bench/", g))
						for i := g; i < b.N; i += goroutines {
							x, err := l.Try(context.Background())
							if err != nil {
								b.Error(err)
								return
							}
							if err := x.Release(context.Background()); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64((self()-before).Nanoseconds())/1000/float64(b.N), "cpu-us/op")
			})
		}
	}
}
