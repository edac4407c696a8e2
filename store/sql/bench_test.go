package sqlstore

import (
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leasehold-dev/leasehold/store"
)

func BenchmarkAcquireRelease(b *testing.B) {
	s := mustOpen(b, filepath.Join(b.TempDir(), "locks.db"), nil)
	for b.Loop() {
		r := request("a")
		mustAcquire(b, s, r)
		mustRelease(b, s, r)
	}
}

// Many goroutines, a lock each.
func BenchmarkAcquireReleaseParallel(b *testing.B) {
	s := mustOpen(b, filepath.Join(b.TempDir(), "locks.db"), nil)
	b.RunParallel(func(p *testing.PB) {
		name := store.NewOwner()
		for p.Next() {
			r := request(name)
			mustAcquire(b, s, r)
			mustRelease(b, s, r)
		}
	})
}

// What a waiter costs each time it asks.
func BenchmarkBusy(b *testing.B) {
	s := mustOpen(b, filepath.Join(b.TempDir(), "locks.db"), nil)
	mustAcquire(b, s, request("a"))
	for b.Loop() {
		if _, err := s.Acquire(b.Context(), request("a")); err == nil {
			b.Fatal("granted twice")
		}
	}
}

func BenchmarkRenew(b *testing.B) {
	for _, n := range []int{1, 512} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			s := mustOpen(b, filepath.Join(b.TempDir(), "locks.db"), nil)
			var leases []store.Request
			for i := range n {
				leases = append(leases, request(strconv.Itoa(i)))
				mustAcquire(b, s, leases[i])
			}
			for b.Loop() {
				for _, err := range s.Renew(b.Context(), leases) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// What each run of a command pays for the store.
func BenchmarkOpenClose(b *testing.B) {
	path := filepath.Join(b.TempDir(), "locks.db")
	for b.Loop() {
		s, err := OpenFile(b.Context(), path, nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// A lock that is passed round a ring of those who wait for it: of one process,
// and of several, who do not hear each other.
func BenchmarkHandOn(b *testing.B) {
	for _, stores := range []int{1, 4} {
		b.Run(strconv.Itoa(stores), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "locks.db")
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			for range stores {
				s := mustOpen(b, path, nil)
				for range 8 / stores {
					wg.Go(func() {
						for left.Add(-1) >= 0 {
							r := request("a")
							if _, err := s.Wait(b.Context(), r, nil); err != nil {
								b.Error(err)
								return
							}
							mustRelease(b, s, r)
						}
					})
				}
			}
			wg.Wait()
		})
	}
}
