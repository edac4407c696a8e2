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
		t.Errorf("inspect of a lock with an empty value: %+v", st)
	}
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("acquire of a lock with an empty value: %v, want busy", err)
	}
}

// TestWaiterNoticesTheReleaseOfAnEmptyLock checks that a waiter notices the release of such a lock: it
// took it for free, and looked again when its place had to be refreshed.
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

// TestForeignHolder checks what is made of the values that other clients write.
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
			t.Errorf("value %.40q: held %v, foreign %v, token %v: want held by a stranger without a token", value, st.Held, st.Holder.Foreign, st.Token)
		}
		if other, ok := owners[st.Holder.Owner]; ok {
			t.Errorf("values %.40q and %.40q are one holder, %.80q", value, other, st.Holder.Owner)
		}
		owners[st.Holder.Owner] = value
		if n := len(st.Holder.Owner); n > store.MaxOwner {
			t.Errorf("value %.40q: the owner shown has %d bytes, want %d at most", value, n, store.MaxOwner)
		}
		list, err := s.List(t.Context(), "")
		if err != nil || len(list) != 0 {
			t.Errorf("value %.40q: listed as %v, %v: want strangers' locks left out", value, list, err)
		}
	}
}

// TestOwnHolder checks that leases of ours are never taken for a stranger's, whatever their
// owner and description are.
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
			t.Errorf("lease of %q with %q: shown as %+v with token %v, was granted %v", r.Owner, r.Meta, st.Holder, st.Token, g.Token)
		}
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
			t.Fatal(err)
		}
	}
}

func inspect(t *testing.T, s store.Store, name string) store.State {
	t.Helper()
	st, err := s.Inspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return st
}
