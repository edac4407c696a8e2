package redisstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// openURL opens a store that is patient with the servers of a busy machine.
func openURL(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := redisstore.Open(t.Context(), url, &redisstore.Options{ConnectTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func ofAnotherList(err error) bool {
	var refused *store.QuorumError
	return errors.As(err, &refused) && refused.Count(store.Refused) == 1 && strings.Contains(err.Error(), "configured with other servers")
}

// A server that belongs to a membership of several grants nothing to clients that are
// configured with this server only, whether they connected before or after: such a client
// and one that has a majority of the other servers would not exclude each other. Inspecting
// and releasing still work.
func TestOneServerOfAMembership(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a := addrs(servers)
	only := openURL(t, "redis://"+a[0])
	held := request("held")
	acquire(t, only, held)
	list := "redis://" + strings.Join(a, ",") + "?max_ttl=2s&node_timeout=1s"
	if _, err := redisadmin.Bootstrap(t.Context(), list, nil, true); err != nil {
		t.Fatal(err)
	}
	several := openURL(t, list)
	eventually.True(t, "the earlier client is notified", func() bool {
		return ofAnotherList(only.Renew(t.Context(), []store.Lease{held})[0])
	})
	if _, err := only.Acquire(t.Context(), store.AcquireRequest{Lease: request("free")}); !ofAnotherList(err) || !strings.Contains(err.Error(), a[2]) {
		t.Errorf("acquire by a client that was connected before: %v, want a refusal that names the other servers", err)
	}
	if st, err := only.Inspect(t.Context(), "held"); err != nil || st.Holder.Owner != held.Owner {
		t.Errorf("inspect: %+v, %v, want the holder %s", st, err, held.Owner)
	}
	if err := only.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
		t.Errorf("release: %v", err)
	}
	late := openURL(t, "redis://"+a[0])
	for name, wants := range map[string]func() error{
		"acquire": func() error {
			_, err := late.Acquire(t.Context(), store.AcquireRequest{Lease: request("free")})
			return err
		},
		"wait": func() error {
			_, err := late.Wait(t.Context(), store.WaitRequest{Lease: request("free")}, nil)
			return err
		},
	} {
		if err := wants(); !ofAnotherList(err) {
			t.Errorf("%s by a client that connected later: %v, want a refusal that names the other servers", name, err)
		}
	}
	r := request("free")
	r.TTL = time.Second
	acquire(t, several, r)
}

// The same holds if the single server keeps quarantine, and has a mark of its own.
func TestOneGuardedServerOfAMembership(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a := addrs(servers)
	only := openURL(t, "redis://"+a[0])
	held := request("held")
	held.Require = store.CrashSafe
	acquire(t, only, held)
	if _, err := redisadmin.Bootstrap(t.Context(), "redis://"+strings.Join(a, ","), nil, true); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the earlier client is notified", func() bool {
		return ofAnotherList(only.Renew(t.Context(), []store.Lease{held})[0])
	})
	free := request("free")
	free.Require = store.CrashSafe
	if _, err := only.Acquire(t.Context(), store.AcquireRequest{Lease: free}); !ofAnotherList(err) {
		t.Errorf("acquire by a client that was connected before: %v, want a refusal that names the other servers", err)
	}
}

// When one server is replaced by several, clients that are configured with it only are served
// beside clients with both memberships until the replacement, and not afterwards.
func TestReplaceOneServer(t *testing.T) {
	t.Parallel() // it mostly waits
	servers := redistest.StartN(t, 3)
	a := addrs(servers)
	const settings = "?max_ttl=10s&node_timeout=5s&connect_timeout=20s"
	both := "redis://" + a[0] + settings + "&next=" + strings.Join(a, ",")
	ask := func(name string) store.Lease {
		r := request(name)
		r.TTL = 2 * time.Second
		return r
	}
	old, two := openURL(t, "redis://"+a[0]+settings), openURL(t, both)
	x := ask("x")
	acquire(t, old, x)
	again := openURL(t, "redis://"+a[0]+settings)
	acquire(t, again, ask("y"))
	eventually.True(t, "a client with both lists finds the lock held by one with the old list", func() bool {
		old.Renew(t.Context(), []store.Lease{x})
		_, err := two.Acquire(t.Context(), store.AcquireRequest{Lease: ask("x")})
		return errors.Is(err, store.ErrBusy)
	})
	if err := redisadmin.Replace(t.Context(), both, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := old.Renew(t.Context(), []store.Lease{x})[0]; !ofAnotherList(err) {
		t.Errorf("renewal by a client with only the old list: %v, want a refusal that names the other servers", err)
	}
	if _, err := again.Acquire(t.Context(), store.AcquireRequest{Lease: ask("z")}); !ofAnotherList(err) {
		t.Errorf("acquire by a client with only the old list: %v, want a refusal that names the other servers", err)
	}
	next := openURL(t, "redis://"+strings.Join(a, ",")+settings)
	acquire(t, next, ask("z"))
}

// Clients that are configured with one server exclude each other, whatever address they have for it.
func TestOneServerByTwoNames(t *testing.T) {
	t.Parallel() // it mostly waits
	server := redistest.Start(t)
	_, port, _ := strings.Cut(server.Addr(), ":")
	careful := openURL(t, "redis://"+server.Addr()+"?max_ttl=2s")
	r := request("a")
	r.TTL, r.Require = time.Second, store.CrashSafe
	eventually.True(t, "the quarantine is over", func() bool { _, err := careful.Acquire(t.Context(), store.AcquireRequest{Lease: r}); return err == nil })
	acquire(t, openURL(t, "redis://localhost:"+port), request("b"))
}
