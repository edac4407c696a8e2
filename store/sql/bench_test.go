package sqlstore

import (
	"path/filepath"
	"strconv"
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
