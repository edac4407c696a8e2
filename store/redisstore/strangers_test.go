package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

// TestEmptyValueIsALock checks that a key with an empty value is held: some clients
// write nothing into it.
func TestEmptyValueIsALock(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, []string{server.Addr()}, nil)
	server.Text(t, "SET", "a", "", "PX", "60000")

	st := inspect(t, s, "a")
	if !st.Held || !st.Holder.Foreign || st.Holder.Owner == "" || st.ExpiresIn <= 0 {
		t.Errorf("inspect of a lock with an empty value: %+v, want a foreign holder with an owner and a TTL", st)
	}
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("acquire of a lock with an empty value: %v, want busy", err)
	}
}

// TestWaiterNoticesTheReleaseOfAnEmptyLock checks that a waiter notices the release of a lock with an
// empty value before it refreshes its place.
func TestWaiterNoticesTheReleaseOfAnEmptyLock(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, []string{server.Addr()}, nil)
	server.Text(t, "SET", "a", "", "PX", "3600000")

	r := request("a")
	r.Owner, r.TTL = store.NewOwnerAt(time.Now()), 50*time.Second
	ctx, cancel := context.WithTimeout(t.Context(), r.TTL/3)
	defer cancel()
	told := make(chan error, 8)
	go func() {
		<-told
		server.Text(t, "DEL", "a")
	}()
	if _, err := s.Wait(ctx, store.WaitRequest{Lease: r}, func(err error) { told <- err }); err != nil {
		t.Fatalf("wait: %v", err)
	}
}

// TestForeignHolder checks how values that other clients write are shown.
func TestForeignHolder(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, []string{server.Addr()}, nil)
	acquired := request("a")
	acquire(t, s, acquired)
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: acquired}); err != nil {
		t.Fatal(err)
	}

	long := strings.Repeat("x", 1<<20)
	owners := map[string]string{}
	for _, value := range []string{"worker 7", "worker 8", "worker", `worker {"id":7}`, `worker {"id":8}`, "worker null", "", " ", long[1:] + "y", "z" + long} {
		server.Text(t, "SET", "a", value, "PX", "60000")
		st := inspect(t, s, "a")
		if !st.Held || !st.Holder.Foreign || st.Token != 0 {
			t.Errorf("value %.40q: held %v, foreign %v, token %v: want a foreign holder without a token", value, st.Held, st.Holder.Foreign, st.Token)
		}
		if other, ok := owners[st.Holder.Owner]; ok {
			t.Errorf("values %.40q and %.40q are shown as the same holder, %.80q", value, other, st.Holder.Owner)
		}
		owners[st.Holder.Owner] = value
		if n := len(st.Holder.Owner); n > store.MaxOwner {
			t.Errorf("value %.40q: the owner shown has %d bytes, want %d at most", value, n, store.MaxOwner)
		}
		list, err := s.List(t.Context(), "")
		if err != nil || len(list) != 0 {
			t.Errorf("value %.40q: list: %v, %v, want no locks of other clients", value, list, err)
		}
	}
}

// TestOwnHolder checks that leases of the store are never shown as foreign, whatever their owner and
// description.
func TestOwnHolder(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, []string{server.Addr()}, nil)
	described := store.Holder{Host: "h", PID: 1}.Encode()
	for _, r := range []store.Lease{
		{Owner: store.NewOwner()}, {Owner: store.NewOwnerAt(time.Now())},
		{Owner: store.NewOwner(), Meta: "not JSON"}, {Owner: store.NewOwner(), Meta: described},
		{Owner: "fixed"}, {Owner: "fixed", Meta: described}, {Owner: "fixed", Meta: store.Holder{}.Encode()},
		{Owner: "fixed", Meta: store.Holder{Purpose: "p"}.Encode()},
	} {
		r.Name, r.TTL = "a", time.Minute
		g := acquire(t, s, r)
		if st := inspect(t, s, "a"); st.Holder.Foreign || st.Holder.Owner != r.Owner || st.Token != g.Token || g.Token == fence.Token(0) {
			t.Errorf("lease of %q with %q: shown as %+v with token %v, want it as granted, with token %v", r.Owner, r.Meta, st.Holder, st.Token, g.Token)
		}
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
			t.Fatal(err)
		}
	}
}

func inspect(t *testing.T, s *store.Store, name string) store.State {
	t.Helper()
	st, err := s.Inspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return st
}
