package redisstore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

// A server that refuses to write because it cannot save its data, lacks replicas or has become
// one does not end a lease: the holder may count on it, and can release it later.
func TestARefusalDoesNotEndALease(t *testing.T) {
	for _, n := range []int{1, 3} {
		servers := redistest.StartN(t, n)
		s := open(t, addrs(servers), nil)
		r := request("a")
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err != nil {
			t.Fatal(err)
		}
		for _, server := range servers {
			server.Text(t, "CONFIG", "SET", "min-replicas-to-write", "1")
		}
		if err := s.Renew(t.Context(), []store.Lease{r})[0]; err == nil || errors.Is(err, store.ErrNotHeld) {
			t.Errorf("%d nodes: renewal while they refuse to write: %v, want an error other than ErrNotHeld", n, err)
		}
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err == nil || errors.Is(err, store.ErrNotHeld) {
			t.Errorf("%d nodes: release while they refuse to write: %v, want an error other than ErrNotHeld", n, err)
		}
		for _, server := range servers {
			server.Text(t, "CONFIG", "SET", "min-replicas-to-write", "0")
		}
		if err := s.Renew(t.Context(), []store.Lease{r})[0]; err != nil {
			t.Errorf("%d nodes: renewal afterwards: %v", n, err)
		}
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
			t.Errorf("%d nodes: release afterwards: %v", n, err)
		}
	}
}

// A server that refuses the release of a place gets it again once it can write. Otherwise it
// would hand the lock to a waiter that has left.
func TestAPlaceIsNotKeptByARefusal(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, []string{server.Addr()}, nil)
	held, waits := request("a"), request("a")
	waits.TTL = time.Hour
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: held}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	_, err := s.Wait(ctx, store.WaitRequest{Lease: waits}, func(error) {
		server.Text(t, "CONFIG", "SET", "min-replicas-to-write", "1")
		stop()
	})
	if err == nil {
		t.Fatal("the waiter was granted a lock that is held")
	}
	server.Text(t, "CONFIG", "SET", "min-replicas-to-write", "0")
	place := "{a}:place:" + waits.Owner
	for end := time.Now().Add(time.Minute); server.Text(t, "EXISTS", place) != "0"; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the place is kept after the server can write again")
		}
	}
}

// A server that is busy with another client's script refuses everything until that ends. A waiter
// waits for that, too.
func TestWaiterOutlivesABusyServer(t *testing.T) {
	for _, n := range []int{1, 3} {
		servers := redistest.StartN(t, n)
		s := open(t, addrs(servers), nil)
		acquire(t, s, request("another lock")) // it is connected
		for _, server := range servers {
			server.Text(t, "CONFIG", "SET", "lua-time-limit", "1")
			go server.Do(t.Context(), "EVAL", "while true do end", "0")
			eventually.True(t, "the server is busy", func() bool {
				_, err := server.Do(t.Context(), "PING")
				return err != nil
			})
		}
		var once sync.Once
		_, err := s.Wait(t.Context(), store.WaitRequest{Lease: request("a")}, func(why error) {
			var q *store.QuorumError
			if !errors.As(why, &q) || q.Count(store.TimedOut) != n {
				return
			}
			once.Do(func() {
				for _, server := range servers {
					go server.Do(t.Context(), "SCRIPT", "KILL")
				}
			})
		})
		if err != nil {
			t.Errorf("%d nodes: wait while they are busy: %v, want the lock", n, err)
		}
	}
}
