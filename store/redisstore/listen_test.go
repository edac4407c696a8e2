//go:build unix

package redisstore_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// undisturbed opens a store in which no late answer, idle connection or connection test
// makes the connection's goroutine read soon.
func undisturbed(t *testing.T, servers []*redistest.Server) *store.Store {
	t.Helper()
	s := open(t, addrs(servers), patient())
	redisstore.ReadsAfter(s, time.Hour)
	redisstore.TriesAfter(s, time.Hour)
	return s
}

// asksAlone makes one call of s after the other so that a caller reads its replies
// inline.
func asksAlone(t *testing.T, s *store.Store) {
	t.Helper()
	for range 20 {
		r := request("alone")
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err != nil {
			t.Fatal(err)
		}
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
			t.Fatal(err)
		}
	}
}

// listens starts a waiter that reads the pushes inline.
func listens(t *testing.T, s *store.Store, servers []*redistest.Server) (r store.Lease, done <-chan outcome, leave func()) {
	t.Helper()
	stack := make([]byte, 1<<20)
	for start := time.Now(); time.Since(start) < time.Minute; { // another goroutine may be reading just then
		asksAlone(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		r := patientWaiter("stock")
		done := wait(t, ctx, s, servers, r)
		if strings.Contains(string(stack[:runtime.Stack(stack, true)]), ").ReadInline(") {
			t.Cleanup(cancel)
			return r, done, cancel
		}
		cancel()
		<-done
	}
	t.Fatal("the waiter does not read inline")
	panic("unreachable")
}

// The only waiter of a store with one server reads the pushes inline. It
// still notices everything else that ends the wait, and no push is lost.
func TestWaiterReadsPushesInline(t *testing.T) {
	servers := redistest.StartN(t, 1)
	s := undisturbed(t, servers)
	ends := func(t *testing.T, done <-chan outcome, want error) {
		t.Helper()
		select {
		case o := <-done:
			if !errors.Is(o.err, want) {
				t.Errorf("the wait ended with %+v, want %v", o, want)
			}
		case <-time.After(soon):
			t.Fatalf("the wait does not end with %v", want)
		}
	}
	t.Run("ContextEnds", func(t *testing.T) {
		held := request("stock")
		takes(t, s, servers, held)
		_, done, leave := listens(t, s, servers)
		leave()
		ends(t, done, context.Canceled)
		mustRelease(t, s, held, store.Grant{})
	})
	t.Run("Closed", func(t *testing.T) {
		held := request("stock")
		takes(t, s, servers, held)
		closes := undisturbed(t, servers)
		_, done, _ := listens(t, closes, servers)
		closed := make(chan struct{})
		go func() { closes.Close(); close(closed) }()
		ends(t, done, store.ErrClosed)
		<-closed
		mustRelease(t, s, held, store.Grant{})
	})
	t.Run("OthersWaitToo", func(t *testing.T) {
		held := request("stock")
		takes(t, s, servers, held)
		r, done, _ := listens(t, s, servers)
		requests, all := []store.Lease{r}, []<-chan outcome{done}
		for range 3 {
			r := patientWaiter("stock")
			requests, all = append(requests, r), append(all, wait(t, t.Context(), s, servers, r))
		}
		mustRelease(t, s, held, store.Grant{})
		for i, done := range all {
			mustRelease(t, s, requests[i], grantedSoon(t, done))
		}
	})
	t.Run("ConnectionBreaks", func(t *testing.T) {
		held := request("stock")
		takes(t, s, servers, held)
		r, done, _ := listens(t, s, servers)
		servers[0].Text(t, "CLIENT", "KILL", "TYPE", "pubsub")
		eventually.True(t, "the connection is made again", func() bool {
			return strings.Contains(servers[0].Text(t, "CLIENT", "LIST", "TYPE", "pubsub"), "name=leasehold")
		})
		mustRelease(t, s, held, store.Grant{})
		mustRelease(t, s, r, grantedSoon(t, done))
	})
}

// A waiter that does not read inline is notified too: while there are waiters, another
// goroutine reads. It does so while a caller makes one call after the other, and after the
// inline reader has been granted its own lock.
func TestWaiterIsNotifiedByAnotherReader(t *testing.T) {
	for _, name := range []string{"AnotherCallerReads", "InlineReaderIsGranted"} {
		t.Run(name, func(t *testing.T) {
			servers := redistest.StartN(t, 1)
			s, other := undisturbed(t, servers), open(t, addrs(servers), nil)
			held := request("stock")
			takes(t, other, servers, held)
			r, listened, leave := listens(t, s, servers)
			next := patientWaiter("stock") // its turn is after r
			var done <-chan outcome
			if name == "AnotherCallerReads" {
				leave() // so that the connection's own goroutine reads
				<-listened
				done = wait(t, t.Context(), s, servers, next)
				asksAlone(t, s)
			} else {
				done = wait(t, t.Context(), s, servers, next)
				mustRelease(t, other, held, store.Grant{})
				held = r
				held.Owner = grantedSoon(t, listened).Lease.Owner
			}
			mustRelease(t, other, held, store.Grant{}) // by another store, so that s sends nothing
			mustRelease(t, s, next, grantedSoon(t, done))
		})
	}
}

// A connection over which nothing arrives any more is noticed although no call is made,
// whether the waiter reads inline or another goroutine reads.
func TestSilentConnection(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, name := range []string{"WaiterReadsInline", "AnotherReads"} {
		t.Run(name, func(t *testing.T) {
			servers := redistest.StartN(t, 1)
			proxies := behind(t, servers)
			s, unreached := open(t, addrs(servers), nil), open(t, addrs(proxies), &redisstore.Options{NodeTimeout: time.Second})
			redisstore.TriesAfter(unreached, 50*time.Millisecond)
			held, next := request("stock"), patientWaiter("stock")
			takes(t, s, servers, held)
			var done <-chan outcome
			if name == "AnotherReads" {
				done = wait(t, t.Context(), unreached, servers, next)
			} else {
				next, done, _ = listens(t, unreached, servers)
			}
			proxies[0].DropReplies()
			eventually.True(t, "the connection is given up", func() bool {
				return strings.Count(servers[0].Text(t, "CLIENT", "LIST", "TYPE", "pubsub"), "name=leasehold") == 1
			})
			mustRelease(t, s, held, store.Grant{})
			proxies[0].Pass()
			mustRelease(t, unreached, next, grantedSoon(t, done))
		})
	}
}
