package leasehold_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

const many = 10_000

// hold acquires many leases of c, checks that all are still held when wait has returned,
// with at most most more goroutines, and releases them.
func hold(t *testing.T, c *leasehold.Client, o leasehold.LockOptions, most int, wait func()) {
	before := runtime.NumGoroutine()
	leases := make([]*leasehold.Lease, many)
	spread(t, func(i int) (err error) {
		leases[i], err = c.Mutex(fmt.Sprint("many/", i)).With(o).Acquire(t.Context())
		return err
	})
	wait()
	if after := runtime.NumGoroutine(); after > before+most {
		t.Errorf("%d goroutines before, %d with %d leases held, want %d at most", before, after, many, before+most)
	}
	lost := 0
	for _, l := range leases {
		if err := l.Err(); err != nil {
			if lost++; lost == 1 {
				t.Errorf("the first lost lease: %v", err)
			}
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d leases were lost, want none", lost, many)
	}
	spread(t, func(i int) error { return leases[i].Release(t.Context()) })
}

// spread calls f for each lease from a few goroutines.
func spread(t *testing.T, f func(i int) error) {
	t.Helper()
	const hands = 32
	var wg sync.WaitGroup
	for h := range hands {
		wg.Go(func() {
			for i := h; i < many; i += hands {
				if err := f(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func TestManyLeasesInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		hold(t, b.c, leasehold.LockOptions{TTL: 30 * time.Second}, 20, func() { time.Sleep(5 * time.Minute) })
		if n := b.store.called("renew"); n > 5*60/10*many/10 {
			t.Errorf("%d requests to renew %d leases 30 times, want %d at most: renewals are batched", n, many, 5*60/10*many/10)
		}
	})
}

func TestManyLeasesOnARealServer(t *testing.T) {
	t.Parallel() // it mostly waits
	server := redistest.Start(t)
	st, err := redisstore.Open(t.Context(), server.URL(), &redisstore.Options{NodeTimeout: 2 * time.Second, ConnectTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	const ttl = 8 * time.Second
	hold(t, leasehold.New(st, nil), leasehold.LockOptions{TTL: ttl}, many/100, func() { // other tests have goroutines too
		// Wait until a lease that nobody renews has expired, by the server's own clock.
		r := store.Lease{Name: "hourglass", Owner: store.NewOwner(), TTL: ttl}
		if _, err := st.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err != nil {
			t.Fatal(err)
		}
		for held := true; held; {
			s, err := st.Inspect(t.Context(), r.Name)
			if err != nil {
				t.Fatal(err)
			}
			if held = s.Held; held {
				time.Sleep(s.ExpiresIn)
			}
		}
	})
}
