package redisstore_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// A single server may take longer to answer than one of several, since no other can answer in its
// place: a lease with a short TTL is renewed there.
func TestSingleServerIsSlow(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := faultproxy.New(t, server.Addr())
	s := open(t, []string{proxy.Addr()}, &redisstore.Options{ConnectTimeout: soon})
	r := request("lock")
	r.TTL = 3 * time.Second
	acquire(t, s, r)
	proxy.Delay(60 * time.Millisecond) // twice a hundredth of the TTL
	failed := 0
	for range 10 {
		if err := s.Renew(t.Context(), []store.Lease{r})[0]; err != nil {
			t.Logf("renewal: %v", err) // the machine may be busy
			failed++
		}
	}
	if failed > 5 {
		t.Errorf("%d of 10 renewals failed", failed)
	}
}

// A client that asks for more than the server can answer within the node timeout still gets locks,
// and keeps its connection and its leases.
func TestMoreIsAskedThanIsAnsweredInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, hosts := bubbled(t, 1)
		network.Rate = 100_000 // enough for some 250 locks a second
		var made atomic.Int64
		s := openBubbled(t, network, hosts, &redisstore.Options{NodeTimeout: 300 * time.Millisecond, ConnectTimeout: soon,
			Dial: func(ctx context.Context, kind, addr string) (net.Conn, error) {
				made.Add(1)
				return network.Dial(ctx, kind, addr)
			}})
		held := request("held")
		held.TTL = time.Minute
		acquire(t, s, held)
		before := made.Load()
		var granted atomic.Int64
		var all sync.WaitGroup
		over := make(chan struct{})
		for range 256 {
			all.Go(func() {
				for {
					select {
					case <-over:
						return
					default:
					}
					r := request("lock/" + store.NewOwner())
					if _, err := s.Acquire(context.Background(), store.AcquireRequest{Lease: r}); err != nil {
						time.Sleep(50 * time.Millisecond) // what is not sent in time may be refused at once
						continue
					}
					granted.Add(1)
					_ = s.Release(context.Background(), store.ReleaseRequest{Lease: r})
				}
			})
		}
		time.Sleep(5 * time.Second)
		renewals, failed := 20, 0
		for range renewals {
			if err := s.Renew(t.Context(), []store.Lease{held})[0]; err != nil {
				failed++
			}
		}
		close(over)
		all.Wait()
		t.Logf("%d locks, over %d new connections, %d of %d renewals failed", granted.Load(), made.Load()-before, failed, renewals)
		if failed > renewals/2 {
			t.Errorf("%d of %d renewals failed beside requests that the server is too slow for", failed, renewals)
		}
		if n := granted.Load(); n < 600 {
			t.Errorf("%d locks were granted, want 600", n)
		}
		if more := made.Load() - before; more > 3 {
			t.Errorf("the client has connected %d times more", more)
		}
	})
}
