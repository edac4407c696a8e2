package redisstore_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// Acquiring and releasing a lock on five nodes allocates little, in the store alone and with
// the client. All goroutines are counted. The race detector discards some memory that could
// be used again, and memory is in use until a node that lags behind has answered, so the
// least of some rounds counts.
func TestAllocations(t *testing.T) {
	// Shorter than the bound of a release, which needs a timer otherwise.
	s := open(t, addrs(redistest.StartN(t, 5)), &redisstore.Options{NodeTimeout: 4 * time.Second})
	ctx := context.Background()
	c := leasehold.New(s, nil)
	r := request("stock")
	many := hold(t, s, "a", 4*redisstore.MaxBundle)
	for _, of := range []struct {
		name string
		most float64
		lock func() error
	}{
		{"store", 2, func() error {
			r.Owner = store.NewOwner() // one of them
			if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: r}); err != nil {
				return err
			}
			return s.Release(ctx, store.ReleaseRequest{Lease: r})
		}},
		{"client", 10, func() error {
			l, err := c.Mutex("stock").Try(ctx)
			if err != nil {
				return err
			}
			return l.Release(ctx)
		}},
		{"renewal of many", 10, func() error { return errors.Join(s.Renew(ctx, many)...) }},
	} {
		most := of.most
		if raceDetector {
			most *= 8
		}
		n := math.Inf(1)
		for try := 0; try < 20 && n > most; try++ {
			n = min(n, testing.AllocsPerRun(200, func() {
				if err := of.lock(); err != nil {
					t.Fatal(err)
				}
			}))
			// Every node answers this after all earlier requests.
			if _, err := s.Inspect(ctx, "stock"); err != nil {
				t.Fatal(err)
			}
		}
		if t.Logf("%s: %v allocations", of.name, n); n > most {
			t.Errorf("%s: %v allocations to lock and unlock, want at most %v", of.name, n, most)
		}
	}
}
