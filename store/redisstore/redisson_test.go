package redisstore_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

// ofRedisson returns Redisson as one of the plain clients.
func ofRedisson() plainClient {
	return plainClients[slices.IndexFunc(plainClients, func(c plainClient) bool { return c.name == "Redisson" })]
}

// TestRedissonHolds checks that the store respects a lock of Redisson: Inspect shows it, an
// attempt finds it taken, and a waiter gets it when Redisson deletes it.
func TestRedissonHolds(t *testing.T) {
	for _, n := range []int{1, 3} {
		servers := redistest.StartN(t, n)
		s := open(t, addrs(servers), nil)
		for _, server := range servers {
			if said := ofRedisson().sends(t, server, ofRedisson().acquire); said != "(nil)" {
				t.Fatalf("Redisson did not get a free lock: %s", said)
			}
		}
		if st := inspect(t, s, "stock"); !st.Held || !st.Holder.Foreign || st.Holder.Owner != redissonField || st.ExpiresIn <= 0 {
			t.Errorf("%d servers: inspect: %+v, want the foreign holder %s", n, st, redissonField)
		}
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("stock")})
		if busy, ok := errors.AsType[*store.BusyError](err); !ok || busy.Holder.Owner != redissonField || busy.ExpiresIn <= 0 {
			t.Errorf("%d servers: acquire: %v, want a *BusyError that names %s", n, err, redissonField)
		}
		next := patientWaiter("stock")
		done := wait(t, t.Context(), s, servers, next)
		for _, server := range servers {
			server.Text(t, "DEL", "stock")
		}
		mustRelease(t, s, next, grantedSoon(t, done))
	}
}

// TestLeaseLostToRedisson checks that a holder whose lock was deleted by force, and then taken
// by Redisson, learns that it has lost it, and does not change the lock of Redisson.
func TestLeaseLostToRedisson(t *testing.T) {
	for _, n := range []int{1, 3} {
		servers := redistest.StartN(t, n)
		s := open(t, addrs(servers), nil)
		r := request("stock")
		takes(t, s, servers, r)
		for _, server := range servers {
			server.Text(t, "DEL", "stock")
			ofRedisson().sends(t, server, ofRedisson().acquire)
		}
		if err := s.Renew(t.Context(), []store.Lease{r})[0]; !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("%d servers: renewal: %v, want %v", n, err, store.ErrNotHeld)
		}
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("%d servers: release: %v, want %v", n, err, store.ErrNotHeld)
		}
		for _, server := range servers {
			if kind := server.Text(t, "TYPE", "stock"); kind != "hash" {
				t.Errorf("%d servers: the lock of Redisson is now a %s, want a hash", n, kind)
			}
		}
	}
}

// TestOtherHashesAreNoLocks checks that a hash that Redisson has not written, or that never
// expires, is an error and not a held lock.
func TestOtherHashesAreNoLocks(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, []string{server.Addr()}, nil)
	for name, make := range map[string][][]string{
		"other":   {{"HSET", "other", "field", "1"}, {"PEXPIRE", "other", "60000"}},
		"endless": {{"HSET", "endless", redissonField, "1"}},
		"list":    {{"RPUSH", "list", redissonField}, {"PEXPIRE", "list", "60000"}},
	} {
		for _, command := range make {
			server.Text(t, command...)
		}
		for _, err := range []error{second(s.Acquire(t.Context(), store.AcquireRequest{Lease: request(name)})), second(s.Inspect(t.Context(), name))} {
			if err == nil || errors.Is(err, store.ErrBusy) || !strings.Contains(err.Error(), "WRONGTYPE") {
				t.Errorf("%s: %v, want WRONGTYPE", name, err)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }
