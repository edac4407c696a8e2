package redisstore_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// throttle forwards connections to a server, with so many bytes a second towards it. It returns its
// address, and how many connections were made.
func throttle(t *testing.T, server string, rate int) (addr string, made *atomic.Int64) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	made = new(atomic.Int64)
	var all sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	all.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				from.Close()
				continue
			}
			made.Add(1)
			mu.Lock()
			open = append(open, from, to)
			mu.Unlock()
			all.Go(func() {
				defer from.Close()
				io.Copy(from, to)
			})
			all.Go(func() {
				defer to.Close()
				b := make([]byte, rate/100)
				for {
					n, err := from.Read(b)
					if err != nil {
						return
					}
					time.Sleep(time.Duration(n) * time.Second / time.Duration(rate))
					if _, err := to.Write(b[:n]); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return l.Addr().String(), made
}

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
	t.Parallel() // it mostly waits
	server := redistest.Start(t)
	addr, made := throttle(t, server.Addr(), 100_000)
	s := open(t, []string{addr}, &redisstore.Options{NodeTimeout: 300 * time.Millisecond, ConnectTimeout: soon})
	held := request("held")
	held.TTL = time.Minute
	acquire(t, s, held)
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
				if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err == nil {
					granted.Add(1)
					_ = s.Release(t.Context(), store.ReleaseRequest{Lease: r})
				}
			}
		})
	}
	before := made.Load()
	begun := time.Now()
	for deadline := begun.Add(time.Minute); granted.Load() < 300 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
	}
	n, took := granted.Load(), time.Since(begun)
	renewals, failed := 20, 0
	for range renewals {
		if err := s.Renew(t.Context(), []store.Lease{held})[0]; err != nil {
			failed++
		}
	}
	close(over)
	if t.Logf("%d of %d renewals failed", failed, renewals); failed > renewals/2 {
		t.Errorf("%d of %d renewals failed beside requests that the server is too slow for", failed, renewals)
	}
	t.Logf("%d locks in %v, over %d new connections", n, took, made.Load()-before)
	if n < 300 {
		t.Errorf("%d locks were granted in %v, want 300", n, took)
	}
	if more := made.Load() - before; more > 3 {
		t.Errorf("the client has connected %d times more", more)
	}
	all.Wait()
}
