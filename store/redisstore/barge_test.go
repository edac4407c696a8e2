package redisstore_test

import (
	"context"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

// A store that barges gets a lock that is free, and one that is released, whether or not
// others wait, and does not starve them.
func TestBarge(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		servers := redistest.StartN(t, nodes)
		o := patient()
		o.Barge = true
		barging, fair := open(t, addrs(servers), o), open(t, addrs(servers), nil)
		type granted struct {
			lease store.Lease
			grant store.Grant
			err   error
		}
		results := make(chan granted)
		ctx, cancel := context.WithCancel(t.Context())
		wait := func(s *store.Store) {
			r := request("a")
			go func() {
				g, err := s.Wait(ctx, store.WaitRequest{Lease: r}, nil)
				results <- granted{r, g, err}
			}()
		}
		var last store.Grant
		next := func() store.Lease {
			t.Helper()
			got := <-results
			if got.err != nil || got.grant.Token <= last.Token {
				t.Fatalf("over %d servers a waiter got %+v, %v, want a token above %v", nodes, got.grant, got.err, last.Token)
			}
			last = got.grant
			return got.lease
		}
		wait(barging)
		holder := next()
		waiters := []*store.Store{barging, fair, barging, fair}
		for i, s := range waiters {
			wait(s)
			eventually.True(t, "the waiter is in the queue", func() bool {
				st, err := fair.Inspect(t.Context(), "a")
				return err == nil && len(st.Queue) == i+1
			})
		}
		for range waiters {
			if err := fair.Release(t.Context(), store.ReleaseRequest{Lease: holder}); err != nil {
				t.Fatal(err)
			}
			holder = next()
		}
		if err := fair.Release(t.Context(), store.ReleaseRequest{Lease: holder}); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
}
