package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// One membership is replaced by another beside clients that know the old one, both, or the
// new one. At every moment the clients that are served exclude each other, and the others
// get an error that names both memberships.
func TestReplace(t *testing.T) {
	t.Parallel() // it mostly waits
	servers := redistest.StartN(t, 4)
	a := addrs(servers)
	before, after := a[:3], []string{a[0], a[1], a[3]}
	url := func(nodes []string, more string) string {
		return "redis://" + strings.Join(nodes, ",") + "?max_ttl=2s&node_timeout=1s" + more
	}
	bothURL := url(before, "&next="+strings.Join(after, ","))
	client := func(url string) *store.Store {
		s, err := redisstore.Open(t.Context(), url, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	ask := func(name string) store.Lease {
		r := request(name)
		r.TTL = 2 * time.Second
		return r
	}
	var refused *store.QuorumError
	other := func(err error) bool {
		return errors.As(err, &refused) && refused.Count(store.Refused) >= 1 && strings.Contains(err.Error(), "configured with other servers")
	}

	old := client(url(before, ""))
	x := ask("x")
	acquire(t, old, x)
	both, next := client(bothURL), client(url(after, ""))
	if _, err := both.Acquire(t.Context(), store.AcquireRequest{Lease: ask("x")}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("acquire with both lists, while a client with the old list has the lock: %v, want %v", err, store.ErrBusy)
	}
	if _, err := next.Acquire(t.Context(), store.AcquireRequest{Lease: ask("free")}); !other(err) || !strings.Contains(err.Error(), strings.Split(a[2], ":")[1]) {
		t.Errorf("acquire with the new list, before the replacement: %v, want a refusal that names the other servers", err)
	}
	y := ask("y")
	acquire(t, both, y)
	if _, err := old.Acquire(t.Context(), store.AcquireRequest{Lease: ask("y")}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("acquire with the old list, while a client with both has the lock: %v, want %v", err, store.ErrBusy)
	}
	if st, err := both.Inspect(t.Context(), "x"); err != nil || !st.Held || st.Holder.Owner != x.Owner {
		t.Errorf("inspect with both lists: %+v, %v, want the holder with the old list", st, err)
	}

	// Both holders renew all the time.
	renewing, stop := context.WithCancel(t.Context())
	defer stop()
	lost := make(chan error, 1)
	go func() {
		for renewing.Err() == nil {
			if err := old.Renew(renewing, []store.Lease{x})[0]; other(err) {
				lost <- err
				return
			}
		}
	}()
	kept := make(chan error, 1)
	go func() {
		for renewing.Err() == nil {
			if err := both.Renew(renewing, []store.Lease{y})[0]; err != nil && renewing.Err() == nil {
				kept <- err
				return
			}
		}
		kept <- nil
	}()
	var steps []string
	if err := redisadmin.Replace(t.Context(), bothURL, nil, func(step string) { steps = append(steps, step) }); err != nil {
		t.Fatal(err)
	}
	if len(steps) != 3 || !strings.Contains(steps[1], "waiting") {
		t.Errorf("steps %q, want 3, the second of which waits", steps)
	}
	select {
	case <-lost:
	case <-time.After(30 * time.Second):
		t.Error("a holder with the old list is still renewed 30s after the replacement")
	}
	if _, err := old.Acquire(t.Context(), store.AcquireRequest{Lease: ask("free")}); !other(err) {
		t.Errorf("acquire with the old list, after the replacement: %v, want a refusal that names the other servers", err)
	}
	z := ask("z")
	acquire(t, next, z)
	if _, err := both.Acquire(t.Context(), store.AcquireRequest{Lease: ask("z")}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("acquire with both lists, while a client with the new list has the lock: %v, want %v", err, store.ErrBusy)
	}
	if _, err := next.Acquire(t.Context(), store.AcquireRequest{Lease: ask("y")}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("acquire with the new list, while a client with both has the lock: %v, want %v", err, store.ErrBusy)
	}
	stop()
	if err := <-kept; err != nil {
		t.Errorf("renewal by a holder with both lists: %v", err)
	}
	if err := both.Release(t.Context(), store.ReleaseRequest{Lease: y}); err != nil {
		t.Error(err)
	}
	acquire(t, next, ask("y"))
}

// An invalid replacement is refused before anything is sent.
func TestReplaceNeedsTwoMemberships(t *testing.T) {
	for url, want := range map[string]string{
		"redis://127.0.0.1:1,127.0.0.1:2?next=127.0.0.1:2,127.0.0.1:1": "nothing to replace",
		"redis://127.0.0.1:1?next=127.0.0.1:2,127.0.0.1:2":             "listed twice",
		"redis://127.0.0.1:1?next=":                                    "no host",
	} {
		if _, err := redisstore.Open(t.Context(), url, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
	server := redistest.Start(t)
	if err := redisadmin.Replace(t.Context(), "redis://"+server.Addr(), nil, nil); err == nil || !strings.Contains(err.Error(), "next=") {
		t.Errorf("Replace with one list: %v, want an error that names next=", err)
	}
}
