package redisstore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

// A waiter sends nothing but refreshes of its place, even if the lease of the holder
// would be over as soon as the place if it were not renewed.
func TestWaitersDoNotPoll(t *testing.T) {
	t.Parallel() // it mostly waits
	const waiters, every = 100, time.Second
	for _, renews := range []bool{false, true} {
		t.Run(fmt.Sprint("renews ", renews), func(t *testing.T) {
			t.Parallel()
			servers := redistest.StartN(t, 1)
			s := open(t, addrs(servers), nil)
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			defer all.Wait()
			defer cancel()
			held := patientWaiter("stock")
			if renews {
				held.TTL = 3 * every
			}
			takes(t, s, servers, held)
			var renewed atomic.Int64
			if renews {
				all.Go(func() {
					tick := time.NewTicker(every)
					defer tick.Stop()
					for ctx.Err() == nil {
						select {
						case <-tick.C:
							renewed.Add(1)
							s.Renew(ctx, []store.Lease{held})
						case <-ctx.Done():
						}
					}
				})
			}
			for range waiters {
				r := waiter("stock")
				r.TTL = 3 * every
				all.Go(func() { s.Wait(ctx, store.WaitRequest{Lease: r}, nil) })
				eventually.True(t, "the waiter has a place", func() bool { return placed(t, servers[0], r) })
			}
			asked := func() int { return calls(t, servers[0], "evalsha") - int(renewed.Load()) }
			start, before := time.Now(), asked()
			eventually.True(t, "each has refreshed its place some times", func() bool { return asked()-before >= 3*waiters })
			if n, most := asked()-before, int(waiters*(time.Since(start)/every+2)); n > most {
				t.Errorf("%d calls in %v, want at most %d", n, time.Since(start), most)
			}
		})
	}
}

// A place is refreshed without a check of the connection: if the connection is gone, the refresh
// shows it, and the place lasts until the next one.
func TestPlacesAreRefreshedWithoutProof(t *testing.T) {
	t.Parallel()                          // it mostly waits
	const every = 1200 * time.Millisecond // longer than a connection is trusted without an answer
	servers := redistest.StartN(t, 1)
	s := open(t, addrs(servers), nil)
	takes(t, s, servers, patientWaiter("stock"))
	r := waiter("stock")
	r.TTL = 3 * every
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Wait(ctx, store.WaitRequest{Lease: r}, nil); close(done) }()
	eventually.True(t, "the waiter has a place", func() bool { return placed(t, servers[0], r) })
	before, proofs := calls(t, servers[0], "evalsha"), calls(t, servers[0], "ping")
	eventually.True(t, "the place is refreshed", func() bool { return calls(t, servers[0], "evalsha")-before >= 2 })
	if n := calls(t, servers[0], "ping") - proofs; n > 0 {
		t.Errorf("the connection was checked with %d PINGs, want none", n)
	}
	cancel()
	<-done
}
