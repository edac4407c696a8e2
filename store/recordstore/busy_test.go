package recordstore_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// far is a driver whose server is far away.
type far struct {
	recordstore.Driver
	rtt time.Duration
}

// travel waits for about half a round trip.
func (d far) travel() { time.Sleep(d.rtt/2 + rand.N(d.rtt/16)) }

func (d far) Read(ctx context.Context, key string) (recordstore.Item, error) {
	d.travel()
	defer d.travel()
	return d.Driver.Read(ctx, key)
}

func (d far) Write(ctx context.Context, key string, value []byte, version string, idle bool) (string, error) {
	d.travel()
	defer d.travel()
	return d.Driver.Write(ctx, key, value, version, idle)
}

// A client that acquires and releases permits of a semaphore all the time replaces the record again before
// any other client can read it and write. It leaves turns to them: another holder renews its lease, and a
// newcomer gets in.
func TestBusyClientLeavesTurns(t *testing.T) {
	const ttl = 15 * time.Second
	for _, rtt := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond} {
		for range 3 {
			synctest.Test(t, func(t *testing.T) {
				srv := &server{class: store.CrashSafe}
				open := func() *store.Store {
					s := recordstore.New(far{srv.driver(), rtt}, &recordstore.Options{Poll: time.Second, Timeout: 10 * time.Second})
					recordstore.SetClock(s, virtual.Clock())
					t.Cleanup(func() { s.Close() })
					return s
				}
				lease := func(permits int64) store.Lease {
					return store.Lease{Name: "x", Kind: store.Semaphore(permits), Owner: store.NewOwner(), TTL: ttl}
				}
				holder, busy, newcomer := open(), open(), open()
				held := lease(3)
				if _, err := holder.Acquire(t.Context(), store.AcquireRequest{Lease: held}); err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() {
						for ctx.Err() == nil {
							l := lease(3)
							if _, err := busy.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err == nil {
								busy.Release(t.Context(), store.ReleaseRequest{Lease: l})
							}
						}
					})
				}
				for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(ttl / 3) {
					bounded, cancel := context.WithTimeout(t.Context(), ttl/3)
					if err := holder.Renew(bounded, []store.Lease{held})[0]; err != nil {
						t.Errorf("%v away: a lease could not be renewed within a third of its TTL: %v", rtt, err)
					}
					cancel()
				}
				if err := holder.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
					t.Errorf("%v away: release: %v", rtt, err)
				}
				bounded, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				l := lease(3)
				if _, err := newcomer.Wait(bounded, store.WaitRequest{Lease: l}, nil); err != nil {
					t.Errorf("%v away: a newcomer: %v", rtt, err)
				}
				stop()
				wg.Wait()
			})
		}
	}
}

// A newcomer gets a permit in time also where a write takes long: the row of a client that is alone is then
// shorter.
func TestBusyClientFarAway(t *testing.T) {
	for range 30 {
		synctest.Test(t, func(t *testing.T) {
			srv := &server{class: store.CrashSafe}
			open := func() *store.Store {
				s := recordstore.New(far{srv.driver(), 200 * time.Millisecond}, nil)
				recordstore.SetClock(s, virtual.Clock())
				t.Cleanup(func() { s.Close() })
				return s
			}
			busy, newcomer := open(), open()
			lease := func() store.Lease {
				return store.Lease{Name: "x", Kind: store.Semaphore(2), Owner: store.NewOwner(), TTL: 15 * time.Second}
			}
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() {
				for ctx.Err() == nil {
					l := lease()
					if _, err := busy.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err == nil {
						busy.Release(t.Context(), store.ReleaseRequest{Lease: l})
					}
				}
			})
			time.Sleep(rand.N(20 * time.Second))
			if _, err := newcomer.Acquire(t.Context(), store.AcquireRequest{Lease: lease()}); err != nil {
				t.Errorf("a newcomer: %v", err)
			}
			stop()
			wg.Wait()
		})
	}
}
