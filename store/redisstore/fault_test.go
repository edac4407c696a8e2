package redisstore_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// settled waits until every node has executed all that was sent to it, so that what follows
// is one message to each.
func settled(t *testing.T, s *store.Store) {
	t.Helper()
	r := request("warm-up")
	acquire(t, s, r)
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
		t.Fatal(err)
	}
	// All nodes answer this after the earlier requests.
	if _, err := s.Inspect(t.Context(), r.Name); err != nil {
		t.Fatal(err)
	}
}

// Two of five nodes accept requests and never answer. Nothing waits for them: neither for the
// node timeout, which is very long here, nor for the TTL.
func TestTwoOfFiveBlackholed(t *testing.T) {
	servers := redistest.StartN(t, 5)
	proxies := behind(t, servers)
	const nodeTimeout = 20 * time.Second
	s := open(t, addrs(proxies), &redisstore.Options{NodeTimeout: nodeTimeout})
	settled(t, s)
	proxies[0].Blackhole()
	proxies[3].Blackhole()
	before := runtime.NumGoroutine()
	start := time.Now()
	const rounds = 200
	for range rounds {
		r := request("a")
		acquire(t, s, r)
		if err := s.Renew(t.Context(), []store.Lease{r})[0]; err != nil {
			t.Fatal(err)
		}
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(start); took > nodeTimeout/2 {
		t.Errorf("%d rounds took %v with a node timeout of %v: something waits for the silent nodes", rounds, took, nodeTimeout)
	}
	if after := runtime.NumGoroutine(); after > before+10 {
		t.Errorf("%d goroutines before, %d after %d rounds: want at most 10 more: they wait for the silent nodes", before, after, rounds)
	}
	proxies[0].Pass()
	proxies[3].Pass()
	proxies[0].Cut()
	proxies[3].Cut()
}

// Locks work with two of five servers down from the start, and again after one more was down.
func TestTwoOfFiveDead(t *testing.T) {
	servers := redistest.StartN(t, 5)
	servers[1].Kill()
	servers[4].Kill()
	s := open(t, addrs(servers), nil)
	r := request("a")
	acquire(t, s, r)
	servers[0].Kill()
	err := s.Renew(t.Context(), []store.Lease{r})[0]
	if !errors.Is(err, store.ErrQuorum) || errors.Is(err, store.ErrNotHeld) {
		t.Errorf("renewal with three of five dead: %v, want no quorum", err)
	}
	if err == nil || !strings.Contains(err.Error(), servers[0].Addr()) {
		t.Errorf("%v, want an error that names %s", err, servers[0].Addr())
	}
	if err := servers[1].Restart(); err != nil {
		t.Fatal(err)
	}
	servers[1].Declare() // it has had no lock yet
	eventually.True(t, "locks are granted again", func() bool {
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("b")})
		return err == nil
	})
}

func TestTooFewNodesAtOpen(t *testing.T) {
	servers := redistest.StartN(t, 3)
	servers[0].Kill()
	servers[1].Kill()
	_, err := redisstore.Open(t.Context(), "redis://"+strings.Join(addrs(servers), ","), nil)
	var q *store.QuorumError
	if !errors.As(err, &q) || q.Need != 2 || q.Count(store.Unreachable) != 2 {
		t.Fatalf("open: %v, want a QuorumError with two unreachable nodes", err)
	}
	for _, s := range servers[:2] {
		if !strings.Contains(err.Error(), s.Addr()) {
			t.Errorf("%v, want an error that names %s", err, s.Addr())
		}
	}
}

// If the reply to an acquire is lost, the outcome on a single node is unknown, and the
// attempt cleans up. Among five nodes the other four decide.
func TestLostAcquireReply(t *testing.T) {
	t.Run("OneNode", func(t *testing.T) {
		servers := redistest.StartN(t, 1)
		proxies := behind(t, servers)
		s := open(t, addrs(proxies), nil)
		proxies[0].CutReplyTo("{a}:gone:", 1)
		r := request("a")
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
		if err == nil || errors.Is(err, store.ErrBusy) || !errors.Is(err, store.ErrAmbiguous) {
			t.Errorf("acquire: %v, want an unknown outcome, and not busy because of its own key", err)
		}
		eventually.True(t, "the key is removed", noLock(t, servers, "a"))
		eventually.True(t, "the lock is granted again", func() bool {
			_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")})
			return err == nil
		})
	})
	t.Run("FiveNodes", func(t *testing.T) {
		servers := redistest.StartN(t, 5)
		proxies := behind(t, servers)
		s := open(t, addrs(proxies), nil)
		proxies[2].CutReplyTo("{a}:gone:", 1)
		r := request("a")
		acquire(t, s, r)
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "no key is left on any node", noLock(t, servers, "a"))
	})
}

// The reply to a release is lost. A second release finds nothing, and nothing is left
// behind.
func TestLostReleaseReply(t *testing.T) {
	servers := redistest.StartN(t, 1)
	proxies := behind(t, servers)
	s := open(t, addrs(proxies), nil)
	r := request("a")
	acquire(t, s, r)
	proxies[0].CutReplyAfter(1)
	err := s.Release(t.Context(), store.ReleaseRequest{Lease: r})
	if err == nil || errors.Is(err, store.ErrNotHeld) || !errors.Is(err, store.ErrAmbiguous) {
		t.Errorf("release: %v, want an unknown outcome", err)
	}
	eventually.True(t, "a second release finds the lease gone", func() bool {
		return errors.Is(s.Release(t.Context(), store.ReleaseRequest{Lease: r}), store.ErrNotHeld)
	})
	if !noLock(t, servers, "a")() {
		t.Error("the key of the lock remains after the release")
	}
}

// An acquire that arrives after its caller has given up does not take the lock: the release
// that was sent after it, over a new connection, has left a tombstone.
func TestLateAcquireFindsATombstone(t *testing.T) {
	servers := redistest.StartN(t, 1)
	proxies := behind(t, servers)
	s := open(t, addrs(proxies), &redisstore.Options{NodeTimeout: 50 * time.Millisecond})
	settled(t, s)
	proxies[0].HoldRequests()
	r := request("a")
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); !errors.Is(err, store.ErrAmbiguous) {
		t.Fatalf("acquire: %v, want an unknown outcome", err)
	}
	// All that was sent arrives now, in any order.
	proxies[0].Release()
	proxies[0].Pass()
	tombstone := "{a}:gone:" + r.Owner
	eventually.True(t, "the release has deleted the lock or left a tombstone", func() bool {
		return servers[0].Text(t, "EXISTS", tombstone) == "1" || servers[0].Text(t, "EXISTS", "a") == "0"
	})
	eventually.True(t, "the lock is free", noLock(t, servers, "a"))
}

// A cancelled attempt returns context.Canceled, and leaves no keys behind.
func TestCancelInTheMiddle(t *testing.T) {
	servers := redistest.StartN(t, 5)
	proxies := behind(t, servers)
	s := open(t, addrs(proxies), &redisstore.Options{NodeTimeout: 20 * time.Second})
	settled(t, s)
	for _, p := range proxies {
		p.HoldReplies()
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var err error
	wg.Go(func() { _, err = s.Acquire(ctx, store.AcquireRequest{Lease: request("a")}) })
	eventually.True(t, "the nodes have granted the lock", func() bool {
		for _, server := range servers {
			if server.Text(t, "EXISTS", "a") != "1" {
				return false
			}
		}
		return true
	})
	cancel()
	wg.Wait()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("acquire: %v, want context.Canceled", err)
	}
	for _, p := range proxies {
		p.Release()
		p.Pass()
	}
	eventually.True(t, "no key is left", noLock(t, servers, "a"))
}

// Frozen nodes execute the requests of a failed attempt when they go on, and keep nothing of
// it.
func TestFrozenNodesLeaveNothing(t *testing.T) {
	servers := redistest.StartN(t, 5)
	s := open(t, addrs(servers), &redisstore.Options{NodeTimeout: 100 * time.Millisecond})
	for _, server := range servers[:3] {
		if err := server.Freeze(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")})
	var q *store.QuorumError
	if !errors.As(err, &q) || q.Count(store.TimedOut) != 3 || q.Count(store.Granted) != 2 {
		t.Errorf("acquire with three of five frozen: %v, want three timed out and two granted", err)
	}
	for _, server := range servers[:3] {
		if err := server.Thaw(); err != nil {
			t.Fatal(err)
		}
	}
	eventually.True(t, "no key is left", noLock(t, servers, "a"))
}

// An attempt that gets a minority of the nodes releases it.
func TestMinorityIsReleased(t *testing.T) {
	servers := redistest.StartN(t, 3)
	for i, server := range servers {
		server.Text(t, "SET", "a", "rival"+string(rune('0'+i)), "PX", "60000")
	}
	s := open(t, addrs(servers), nil)
	servers[0].Text(t, "DEL", "a")
	_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")})
	var busy *store.BusyError
	if !errors.As(err, &busy) || len(busy.Nodes) != 3 {
		t.Fatalf("acquire: %v, want busy with each node's answer", err)
	}
	eventually.True(t, "the one node that granted is released", noLock(t, servers[:1], "a"))
}

// Close while many goroutines acquire locks ends their calls with ErrClosed or ErrQuorum.
func TestCloseDuringManyAcquires(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s := open(t, addrs(servers), nil)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 20 {
				r := request(store.NewOwner())
				if _, err := s.Acquire(context.Background(), store.AcquireRequest{Lease: r}); err != nil {
					if !errors.Is(err, store.ErrClosed) && !errors.Is(err, store.ErrQuorum) {
						t.Errorf("acquire around Close: %v", err)
					}
					return
				}
			}
		})
	}
	s.Close()
	wg.Wait()
}

// A release and the acquire after it can arrive together at a slow node. It executes them in
// order, also if it does not know the scripts yet.
func TestOrderHoldsOnASlowNode(t *testing.T) {
	servers := redistest.StartN(t, 3)
	proxies := behind(t, servers)
	s := open(t, addrs(proxies), &redisstore.Options{NodeTimeout: 20 * time.Second})
	uses(t, s) // all nodes have the mark of this list
	proxies[2].HoldRequests()
	first, second := request("a"), request("a")
	acquire(t, s, first)
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: first}); err != nil {
		t.Fatal(err)
	}
	acquire(t, s, second)
	proxies[2].Release()
	proxies[2].Pass()
	state, err := s.Inspect(t.Context(), "a")
	if err != nil || state.Nodes[2].Holder.Owner != second.Owner {
		t.Errorf("the slow node has %v (%v), want the second lease", state.Nodes[2], err)
	}
}
