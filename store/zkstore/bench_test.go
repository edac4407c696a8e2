package zkstore

import (
	"fmt"
	"sync"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/store"
)

// BenchmarkLock acquires and releases locks of which each goroutine has its own, with the
// store and with go-zookeeper's Lock. Both use one connection.
func BenchmarkLock(b *testing.B) {
	for _, n := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("store/%d", n), func(b *testing.B) {
			s := mustOpen(b, &Options{servers: []string{shared.Addr}})
			inParallel(b, n, func(g int) func() error {
				name := fmt.Sprintf("bench/%d", g)
				return func() error {
					l := request(name, 10*time.Second)
					if _, err := s.Acquire(b.Context(), store.AcquireRequest{Lease: l}); err != nil {
						return err
					}
					return s.Release(b.Context(), store.ReleaseRequest{Lease: l})
				}
			})
		})
		b.Run(fmt.Sprintf("go-zookeeper/%d", n), func(b *testing.B) {
			c := connect(b)
			inParallel(b, n, func(g int) func() error {
				l := gozk.NewLock(c, fmt.Sprintf("/bench-%d", g), gozk.WorldACL(gozk.PermAll))
				return func() error {
					if err := l.Lock(); err != nil {
						return err
					}
					return l.Unlock()
				}
			})
		})
	}
}

// inParallel makes b.N turns, by n goroutines.
func inParallel(b *testing.B, n int, turn func(g int) func() error) {
	turns := make(chan struct{})
	var wg sync.WaitGroup
	for g := range n {
		do := turn(g)
		if err := do(); err != nil { // makes the node of the lock
			b.Fatal(err)
		}
		wg.Go(func() {
			for range turns {
				if err := do(); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for b.Loop() {
		turns <- struct{}{}
	}
	close(turns)
	wg.Wait()
}
