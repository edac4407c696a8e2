package redisstore_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// freeze stops the servers until thaw is called.
func freeze(t *testing.T, servers ...*redistest.Server) (thaw func()) {
	t.Helper()
	for _, s := range servers {
		if err := s.Freeze(); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for _, s := range servers {
			if err := s.Thaw(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// closesSoon closes a store whose nodes may take most of a minute to answer.
func closesSoon(t *testing.T, s *store.Store) {
	t.Helper()
	start := time.Now()
	s.Close()
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("Close took %v, want at most 20s: it waits for servers that do not answer", took)
	}
}

// Close does not wait for servers that are stopped. The releases for them are in their
// sockets, and are executed when they go on.
func TestCloseBesideFrozenServers(t *testing.T) {
	t.Parallel()                                                                                    // it mostly waits
	patient := &redisstore.Options{NodeTimeout: 50 * time.Second, ConnectTimeout: 10 * time.Second} // a busy machine is slow to connect
	t.Run("before the store was opened", func(t *testing.T) {
		servers := redistest.StartN(t, 5)
		thaw := freeze(t, servers[1], servers[3])
		s := open(t, addrs(servers), &redisstore.Options{NodeTimeout: patient.NodeTimeout})
		r := request("a")
		acquire(t, s, r)
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
			t.Fatal(err)
		}
		closesSoon(t, s)
		thaw()
		eventually.True(t, "no keys are left", noLock(t, servers, "a"))
	})
	t.Run("after the store was opened", func(t *testing.T) {
		servers := redistest.StartN(t, 5)
		s := open(t, addrs(servers), patient)
		settled(t, s)
		thaw := freeze(t, servers[1], servers[3])
		r := request("a")
		acquire(t, s, r)
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
			t.Fatal(err)
		}
		closesSoon(t, s)
		thaw()
		eventually.True(t, "no keys are left", noLock(t, servers, "a"))
	})
	t.Run("while the lock was held", func(t *testing.T) {
		servers := redistest.StartN(t, 5)
		s := open(t, addrs(servers), patient)
		r := request("a")
		takes(t, s, servers, r)
		time.Sleep(1200 * time.Millisecond) // more than maxIdle, so that connections are probed before use
		thaw := freeze(t, servers[1], servers[3])
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
			t.Fatal(err)
		}
		closesSoon(t, s)
		thaw()
		eventually.True(t, "no keys are left", noLock(t, servers, "a"))
	})
	t.Run("by an attempt that failed", func(t *testing.T) {
		servers := redistest.StartN(t, 3)
		s, other := open(t, addrs(servers), patient), open(t, addrs(servers), nil)
		settled(t, s)
		for _, server := range servers[:2] {
			server.Text(t, "SET", "a", "a stranger")
		}
		thaw := freeze(t, servers[2])
		r := request("a")
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err == nil {
			t.Fatal("granted a lock that another client holds")
		}
		closesSoon(t, s)
		thaw()
		// All nodes answer this after the earlier requests.
		if _, err := other.Inspect(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "the request was served", func() bool {
			return servers[2].Text(t, "EXISTS", "{a}:gone:"+r.Owner, "{a}:token") != "0"
		})
		eventually.True(t, "no keys are left", func() bool {
			return !hasLock(t, servers[2], r)
		})
	})
}

// Close waits a little for a node whose connection broke after a release was sent, and sends
// it again.
func TestCloseReleasesWhereAConnectionBroke(t *testing.T) {
	servers := redistest.StartN(t, 3)
	proxies := behind(t, servers)
	s := open(t, addrs(proxies), nil)
	r := request("a")
	takes(t, s, servers, r)
	proxies[1].CutRequest("{a}:waits") // a key of the release
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
		t.Fatal(err)
	}
	proxies[1].Await(t, "the release is cut", func(st faultproxy.Stats) bool { return st.Cut > 0 })
	s.Close()
	eventually.True(t, "no keys are left", noLock(t, servers, "a"))
}
