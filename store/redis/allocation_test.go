package redis_test

import (
	"context"
	"math"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

// A lock taken and given back on five nodes takes next to no memory, in the
// store and in all of it. All goroutines are counted. The race detector throws
// away some of what could be used again.
func TestAllocations(t *testing.T) {
	s := open(t, addrs(redistest.StartN(t, 5)), nil)
	ctx := context.Background()
	c := leasehold.New(s, nil)
	r := request("stock")
	for _, of := range []struct {
		name string
		most float64
		lock func() error
	}{
		{"store", 2, func() error {
			r.Owner = store.NewOwner() // one of them
			if _, err := s.Acquire(ctx, r); err != nil {
				return err
			}
			return s.Release(ctx, r)
		}},
		{"client", 16, func() error {
			l, err := c.Mutex("stock").Try(ctx)
			if err != nil {
				return err
			}
			return l.Release(ctx)
		}},
	} {
		most := of.most
		if raceDetector {
			most *= 8
		}
		// On a busy machine answers come late, and find the memory in use.
		n := math.Inf(1)
		for try := 0; try < 5 && n > most; try++ {
			n = min(n, testing.AllocsPerRun(500, func() {
				if err := of.lock(); err != nil {
					t.Fatal(err)
				}
			}))
		}
		if t.Logf("%s: %v allocations", of.name, n); n > most {
			t.Errorf("%s: %v allocations to lock and unlock, want at most %v", of.name, n, most)
		}
	}
}
