package redisstore_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// settled has every node done with all that was sent to it, so that what
// follows is one message to each.
func settled(t *testing.T, s store.Store) {
	t.Helper()
	r := request("warm-up")
	acquire(t, s, r)
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
		t.Fatal(err)
	}
	// It hears every node, after all that was sent before.
	if _, err := s.Inspect(t.Context(), r.Name); err != nil {
		t.Fatal(err)
	}
}

// Two of five nodes take requests and never answer. Nothing waits for them: not
// for the node timeout, which is made enormous here, nor for the TTL.
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
		t.Errorf("%d goroutines before, %d after %d rounds: the silent nodes collect them", before, after, rounds)
	}
	proxies[0].Pass()
	proxies[3].Pass()
	proxies[0].Cut()
	proxies[3].Cut()
}

// Two of five dead from the start, and one more dying and coming back.
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
		t.Errorf("%v does not name the dead node %s", err, servers[0].Addr())
	}
	if err := servers[1].Restart(); err != nil {
		t.Fatal(err)
	}
	servers[1].Declare() // it had no lock yet
	eventually(t, "locks are granted again", func() bool {
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
			t.Errorf("%v does not name %s", err, s.Addr())
		}
	}
}

// The reply to an acquire is lost on the way: on a single node nobody can know
// what happened, so the attempt cleans up; among five the other four decide.
func TestLostAcquireReply(t *testing.T) {
	t.Run("OneNode", func(t *testing.T) {
		servers := redistest.StartN(t, 1)
		proxies := behind(t, servers)
		s := open(t, addrs(proxies), nil)
		proxies[0].CutReplyTo("{a}:gone:", 1)
		r := request("a")
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
		if err == nil || errors.Is(err, store.ErrBusy) || !errors.Is(err, store.ErrAmbiguous) {
			t.Errorf("acquire: %v, want an unknown outcome, never busy with its own key", err)
		}
		eventually(t, "the key is removed", noLock(t, servers, "a"))
		eventually(t, "the lock is granted again", func() bool {
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
		eventually(t, "nothing is left on any node", noLock(t, servers, "a"))
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
	eventually(t, "the node can be asked again", func() bool {
		return errors.Is(s.Release(t.Context(), store.ReleaseRequest{Lease: r}), store.ErrNotHeld)
	})
	if !noLock(t, servers, "a")() {
		t.Error("the key is still there")
	}
}

// An acquire that is still on its way when everybody has given up must not take
// the lock when it arrives at last: the release that was sent after it, over a
// new connection, left a tombstone.
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
	// Let everything that was sent arrive, in whatever order it does.
	proxies[0].Release()
	proxies[0].Pass()
	tomb := "{a}:gone:" + r.Owner
	eventually(t, "the release has arrived, and has deleted or forestalled the acquire", func() bool {
		return servers[0].Text(t, "EXISTS", tomb) == "1" || servers[0].Text(t, "EXISTS", "a") == "0"
	})
	eventually(t, "the lock is free", noLock(t, servers, "a"))
}

// A cancelled attempt says so, and within moments nothing of it is left.
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
	eventually(t, "the nodes have granted, unheard", func() bool {
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
	eventually(t, "no key is left", noLock(t, servers, "a"))
}

// Frozen nodes come back with what was sent to them meanwhile; nothing of it
// stays.
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
	eventually(t, "no key is left", noLock(t, servers, "a"))
}

// Clients that split the nodes between them all release and try again.
func TestSplitVotesAreGivenBack(t *testing.T) {
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
	eventually(t, "the one node that granted is given back", func() bool {
		return servers[0].Text(t, "EXISTS", "a") == "0"
	})
}

func TestManyLeasesOneClosedStore(t *testing.T) {
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

// A release and the acquire behind it may travel together to a slow node. Their
// order holds there, whatever the server has yet to learn.
func TestOrderHoldsOnASlowNode(t *testing.T) {
	servers := redistest.StartN(t, 3)
	proxies := behind(t, servers)
	s := open(t, addrs(proxies), &redisstore.Options{NodeTimeout: 20 * time.Second})
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
		t.Errorf("the slow node: %v (%v), want it to hold the second lease", state.Nodes[2], err)
	}
}
