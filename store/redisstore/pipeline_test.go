package redisstore_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

const long = 20 * time.Second

// has polls until the server has the lock's key.
func has(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	eventually.True(t, "the server has "+name, func() bool { return s.Text(t, "EXISTS", name) == "1" })
}

// A later call does not wait for the answers to earlier ones. If more than four were in flight, a
// server that seems to have a backlog would not get the next one.
func TestSeveralBatchesInFlight(t *testing.T) {
	servers := redistest.StartN(t, 1)
	proxies := behind(t, servers)
	s := open(t, addrs(proxies), patient())
	settled(t, s)
	proxies[0].HoldReplies()
	var wg sync.WaitGroup
	for i := range 4 {
		r := request(fmt.Sprint(i))
		wg.Go(func() {
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err != nil {
				t.Error(err)
			}
		})
		has(t, servers[0], r.Name) // although no reply has arrived
	}
	proxies[0].Release()
	proxies[0].Pass()
	wg.Wait()
}

// If the connection breaks with answers outstanding, the outcome of every call is unknown, and
// no keys of them are left in the end.
func TestConnectionBreaksWithAnswersOutstanding(t *testing.T) {
	servers := redistest.StartN(t, 1)
	proxies := behind(t, servers)
	s := open(t, addrs(proxies), patient())
	held := request("held")
	acquire(t, s, held)
	settled(t, s)
	proxies[0].HoldReplies()
	var wg sync.WaitGroup
	for i := range 3 {
		r := request(fmt.Sprint(i))
		wg.Go(func() {
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); !errors.Is(err, store.ErrAmbiguous) || errors.Is(err, store.ErrBusy) {
				t.Errorf("acquire: %v, want an unknown outcome", err)
			}
		})
		has(t, servers[0], r.Name)
	}
	wg.Go(func() {
		r := held
		r.TTL *= 2
		if err := s.Renew(t.Context(), []store.Lease{r})[0]; !errors.Is(err, store.ErrAmbiguous) || errors.Is(err, store.ErrNotHeld) {
			t.Errorf("renewal: %v, want an unknown outcome", err)
		}
	})
	eventually.True(t, "the server has renewed", func() bool {
		ttl, err := time.ParseDuration(servers[0].Text(t, "PTTL", "held") + "ms")
		return err == nil && ttl > held.TTL
	})
	proxies[0].Cut()
	proxies[0].Pass()
	wg.Wait()
	for i := range 3 {
		eventually.True(t, "no keys of the call are left", noLock(t, servers, fmt.Sprint(i)))
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
		t.Error(err)
	}
}

// A release that was in flight when the connection broke is sent again. A majority has
// answered it, so no caller sends it, and the node would keep the lock for its TTL.
func TestReleaseIsSentAgain(t *testing.T) {
	servers := redistest.StartN(t, 3)
	proxies := behind(t, servers)
	s := open(t, addrs(proxies), patient())
	r := request("a")
	acquire(t, s, r)
	settled(t, s)
	has(t, servers[2], "a")
	proxies[2].Blackhole() // loses what is sent from now on
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
		t.Fatal(err)
	}
	proxies[2].Await(t, "the release is lost", func(st faultproxy.Stats) bool { return st.Requests.Lost > 0 })
	proxies[2].Pass()
	eventually.True(t, "the release is sent again", noLock(t, servers, "a"))
}

// Scripts are flushed with commands in flight. They are loaded again, and the order of the
// calls stays.
func TestOrderHoldsWhenScriptsAreFlushed(t *testing.T) {
	servers := redistest.StartN(t, 3)
	proxies := behind(t, servers)
	s := open(t, addrs(proxies), patient())
	first, second := request("a"), request("a")
	acquire(t, s, first)
	settled(t, s)
	proxies[2].HoldRequests()
	servers[2].Text(t, "SCRIPT", "FLUSH")
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: first}); err != nil {
		t.Fatal(err)
	}
	acquire(t, s, second)
	proxies[2].Release()
	proxies[2].Pass()
	state, err := s.Inspect(t.Context(), "a")
	if err != nil || state.Nodes[2].Holder.Owner != second.Owner {
		t.Errorf("the node that had forgotten the scripts has %v (%v), want the second lease", state.Nodes[2], err)
	}
}

// No call fails if the scripts are flushed again and again.
func TestScriptsFlushedUnderLoad(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, []string{server.Addr()}, patient())
	var all sync.WaitGroup
	var failed sync.Once
	for g := range 16 {
		all.Go(func() {
			for range 100 {
				r := request(fmt.Sprint(g))
				_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
				if err = errors.Join(err, s.Release(t.Context(), store.ReleaseRequest{Lease: r})); err != nil {
					failed.Do(func() { t.Error(err) })
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			// Some flushes hit a server on which the scripts are being loaded.
			server.Text(t, "SCRIPT", "FLUSH")
		}
	}
}

// A connection is closed if the server sends a reply without a request: all later replies
// would belong to the wrong requests.
func TestReplyWithoutARequest(t *testing.T) {
	server := &parrot{}
	yes := "*2\r\n:1\r\n$16\r\n1790000000123456\r\n"
	server.say(yes)
	s := open(t, []string{server.listen(t)}, patient())
	acquire(t, s, request("a"))
	before := server.gone()
	server.say(yes + yes)
	acquire(t, s, request("a"))
	eventually.True(t, "the connection with a surplus reply is closed", func() bool { return server.gone() > before })
	server.say("*3\r\n:0\r\n$5\r\nrival\r\n:29000\r\n")
	var busy *store.BusyError
	eventually.True(t, "the reply to the request is used", func() bool {
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")})
		if err == nil {
			t.Fatal("a surplus reply was used as the answer to another request")
		}
		return errors.As(err, &busy)
	})
}

// A node that answers nothing is down for all callers as soon as one request has waited
// long enough.
func TestSilentNodeIsDownForAllCallers(t *testing.T) {
	servers := redistest.StartN(t, 1)
	proxies := behind(t, servers)
	s := open(t, addrs(proxies), &redisstore.Options{NodeTimeout: 50 * time.Millisecond, ConnectTimeout: long})
	settled(t, s)
	proxies[0].Blackhole()
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, store.ErrAmbiguous) {
		t.Fatalf("acquire: %v, want an unknown outcome", err)
	}
	// One of these calls makes the store try the node again, which takes as long as
	// connecting may. The others do not wait for that.
	eventually.True(t, "the node is known to be unreachable", func() bool {
		start := time.Now()
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")})
		return err != nil && time.Since(start) < 20*time.Millisecond
	})
	proxies[0].Pass()
	eventually.True(t, "the node is used again", func() bool {
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("b")})
		return err == nil
	})
}
