package redisstore_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

// waiter returns the request of a waiter.
func waiter(name string) store.Lease {
	r := request(name)
	r.Owner = store.NewOwnerAt(time.Now())
	return r
}

// outcome is the result of a Wait.
type outcome struct {
	grant store.Grant
	err   error
}

// waits calls Wait in the background.
func waits(ctx context.Context, s *store.Store, r store.Lease) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		g, err := s.Wait(ctx, store.WaitRequest{Lease: r}, nil)
		done <- outcome{g, err}
	}()
	return done
}

// wait is like waits, and returns once the request is enqueued at every server.
func wait(t *testing.T, ctx context.Context, s *store.Store, servers []*redistest.Server, r store.Lease) <-chan outcome {
	t.Helper()
	done := waits(ctx, s, r)
	for _, server := range servers {
		eventually.True(t, "the waiter has a place", func() bool { return placed(t, server, r) })
	}
	return done
}

// placed reports whether the owner has a place in the queue without the no-push flag.
func placed(t *testing.T, server *redistest.Server, r store.Lease) bool {
	place := server.Text(t, "GET", "{"+r.Name+"}:place:"+r.Owner)
	return place != "(nil)" && place[0] == '0'
}

// takes acquires the lock, and waits until all servers have it.
func takes(t *testing.T, s *store.Store, servers []*redistest.Server, r store.Lease) store.Grant {
	t.Helper()
	g := acquire(t, s, r)
	for _, server := range servers {
		has(t, server, r.Name)
	}
	return g
}

func granted(t *testing.T, done <-chan outcome) store.Grant {
	t.Helper()
	select {
	case o := <-done:
		if o.err != nil {
			t.Fatal(o.err)
		}
		return o.grant
	case <-time.After(20 * time.Second):
		t.Fatal("the waiter was not granted the lock within 20s")
	}
	panic("unreachable")
}

// mustRelease releases the lock of a grant, which may have another owner of the same rank.
func mustRelease(t *testing.T, s *store.Store, r store.Lease, g store.Grant) {
	t.Helper()
	if g.Lease.Owner != "" {
		r = g.Lease
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
		t.Fatal(err)
	}
}

// nothingLeft waits until only counters and tombstones are left, and what was left is deleted.
func nothingLeft(t *testing.T, servers []*redistest.Server) {
	t.Helper()
	for _, s := range servers {
		eventually.True(t, "no lock, no place and no queue is left", func() bool {
			return !slices.ContainsFunc(s.Keys(t), func(key string) bool {
				return !strings.HasSuffix(key, "}:token") && !strings.Contains(key, "}:gone:") && !s.Deleted(t, key)
			})
		})
	}
}

// A lock that is released goes to the waiters, one after the other, and leaves only its counter in
// the end.
func TestHandOff(t *testing.T) {
	for _, nodes := range []int{1, 3, 5} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			servers := redistest.StartN(t, nodes)
			holder, other := open(t, addrs(servers), nil), open(t, addrs(servers), nil)
			first := request("stock")
			token := takes(t, holder, servers, first).Token
			a, b := waiter("stock"), waiter("stock")
			gotA := wait(t, t.Context(), other, servers, a)
			gotB := wait(t, t.Context(), holder, servers, b)
			if err := holder.Release(t.Context(), store.ReleaseRequest{Lease: first}); err != nil {
				t.Fatal(err)
			}
			g := granted(t, gotA)
			if g.Token <= token {
				t.Errorf("token %d after %d, want a larger one", g.Token, token)
			}
			mustRelease(t, other, a, g)
			next := granted(t, gotB)
			if next.Token <= g.Token {
				t.Errorf("token %d after %d, want a larger one", next.Token, g.Token)
			}
			mustRelease(t, holder, b, next)
			nothingLeft(t, servers)
		})
	}
}
