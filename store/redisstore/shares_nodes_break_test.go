package redisstore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// breakables returns pairs of leases of locks that several can hold: one to break, and one
// that a waiter wants.
func breakables() map[string][2]store.Lease {
	fixed := shared("fixed", store.Semaphore(3), 2)
	fixed.Owner, fixed.Attempt = "me", store.NewOwner()
	return map[string][2]store.Lease{
		"permit": {shared("permit", store.Semaphore(2), 1), shared("permit", store.Semaphore(2), 2)},
		"fixed":  {fixed, shared("fixed", store.Semaphore(3), 2)},
		"reader": {shared("reader", store.ReadWrite, 1), shared("reader", store.ReadWrite, store.ReadWriteLimit)},
		"writer": {shared("writer", store.ReadWrite, store.ReadWriteLimit), shared("writer", store.ReadWrite, 1)},
	}
}

// acquireOnAll acquires r, and waits until every server has it.
func acquireOnAll(t *testing.T, s *store.Store, r store.Lease) store.Lease {
	t.Helper()
	r = acquire(t, s, r).Lease
	onAll(t, s, r)
	return r
}

// onAll renews r, the only lease of its lock, until every server has it.
func onAll(t *testing.T, s *store.Store, r store.Lease) {
	t.Helper()
	eventually.True(t, "every server has the lease", func() bool {
		st, err := s.Inspect(t.Context(), r.Name)
		without := func(n store.NodeOutcome) bool { return n.Holder.Owner != r.Owner }
		return err == nil && !slices.ContainsFunc(st.Nodes, without) || s.Renew(t.Context(), []store.Lease{r})[0] != nil
	})
}

// breakNow breaks the lease of r at once.
func breakNow(t *testing.T, s *store.Store, b store.BreakRequest) {
	t.Helper()
	b.Now = true
	if left, err := s.BreakLease(t.Context(), b); err != nil || left != 0 {
		t.Fatalf("break now: %v left, %v, want 0", left, err)
	}
}

// A majority is enough to break the lease of a permit, a reader or a writer, and less is not.
// The server that was down still has its part of the lease when it is back, without effect.
func TestBreakOfKindsWithServersDown(t *testing.T) {
	t.Parallel()
	for what, c := range breakables() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			servers := redistest.StartN(t, 3)
			proxies := behind(t, servers)
			s, operator := open(t, addrs(servers), patient()), openVia(t, servers, proxies)
			r, next := acquireOnAll(t, s, c[0]), c[1]
			b := breakOf(t, operator, r)
			proxies[0].RefuseNew()
			proxies[0].Cut()
			if left, err := operator.BreakLease(t.Context(), b); err != nil || left <= 0 || left > r.TTL {
				t.Fatalf("with one of three servers down: %v left, %v, want up to %v", left, err, r.TTL)
			}
			if st, err := s.Inspect(t.Context(), r.Name); err != nil || !st.Holder.Broken || st.Broken == nil || st.Broken.Reason != "test" {
				t.Errorf("inspect: %+v, %v, want a broken holder with the reason", st, err)
			}
			for range 3 {
				if err := s.Renew(t.Context(), []store.Lease{r})[0]; !errors.Is(err, store.ErrNotHeld) {
					t.Errorf("renew a broken lease: %v, want %v", err, store.ErrNotHeld)
				}
			}
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: next}); !errors.Is(err, store.ErrBusy) {
				t.Errorf("acquire before the owner of a broken lease has released it: %v, want %v", err, store.ErrBusy)
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r, Renewed: true}); err != nil {
				t.Errorf("release by its owner: %v", err)
			}
			eventually.True(t, "a break after the release has nothing to do, once the release has reached every server", func() bool {
				left, err := operator.BreakLease(t.Context(), b)
				return err == nil && left == 0
			})
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: c[0]}); err == nil {
				t.Error("a late request acquires the lock again")
			}
			next = acquireOnAll(t, s, next)
			b = breakOf(t, s, next)
			proxies[1].RefuseNew()
			proxies[1].Cut()
			for _, b.Now = range []bool{false, true} {
				if _, err := operator.BreakLease(t.Context(), b); !errors.Is(err, store.ErrQuorum) {
					t.Errorf("with two of three servers down: %v, want %v", err, store.ErrQuorum)
				}
			}
			proxies[1].Pass()
			eventually.True(t, "a majority is back", func() bool {
				left, err := operator.BreakLease(t.Context(), b)
				return err == nil && left == 0
			})
			if err := s.Renew(t.Context(), []store.Lease{next})[0]; !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("renew a broken lease: %v, want %v", err, store.ErrNotHeld)
			}
		})
	}
}

// A lease that was broken, at once or not, is not restored on a server that has lost it, and gets
// no place there. The other servers have parts with other tokens after a heal.
func TestBrokenLeaseOfAKindIsNotHealed(t *testing.T) {
	t.Parallel()
	for what, c := range breakables() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			servers := redistest.StartN(t, 3)
			s := open(t, addrs(servers), patient())
			r := acquireOnAll(t, s, c[0])
			for _, server := range servers[:2] { // each draws a token of its own
				server.Text(t, "DEL", r.Name)
				onAll(t, s, r)
			}
			servers[0].Text(t, "DEL", r.Name)
			b := breakOf(t, s, r)
			if left, err := s.BreakLease(t.Context(), b); err != nil || left <= 0 {
				t.Fatalf("break: %v left, %v, want more than 0", left, err)
			}
			for range 3 {
				if err := s.Renew(t.Context(), []store.Lease{r})[0]; !errors.Is(err, store.ErrNotHeld) || strings.Contains(err.Error(), "now held by") {
					t.Errorf("renewal: %v, want %v without a new holder", err, store.ErrNotHeld)
				}
			}
			tombstone := "{" + r.Name + "}:gone:" + r.Owner
			if r.Attempt != "" {
				tombstone += " " + r.Attempt
			}
			if servers[0].Text(t, "EXISTS", r.Name) != "0" || servers[0].Text(t, "EXISTS", tombstone) != "1" {
				t.Error("the server has the lease again, or no tombstone")
			}
			breakNow(t, s, b)
			for _, server := range servers {
				if server.Text(t, "EXISTS", r.Name) != "0" || server.Text(t, "EXISTS", tombstone) != "1" {
					t.Error("the server has the lease after it was broken at once, or no tombstone")
				}
			}
			mustRelease(t, s, c[1], acquire(t, s, c[1]))
			breakNow(t, s, b) // a second time
		})
	}
}

// If the replies to a break are lost, it may have been executed, and can be repeated. With Now,
// waiters get the lock at once.
func TestBreakOfKindsWithLostReplies(t *testing.T) {
	t.Parallel()
	for what, c := range breakables() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			servers := redistest.StartN(t, 3)
			proxies := behind(t, servers)
			s, operator := open(t, addrs(servers), patient()), openVia(t, servers, proxies)
			r := acquireOnAll(t, s, c[0])
			other := shared("other", store.Semaphore(2), 1)
			acquireOnAll(t, s, other)
			breakNow(t, operator, breakOf(t, operator, other)) // so that the servers have the script
			done := wait(t, t.Context(), s, servers, c[1])
			b := breakOf(t, operator, r)
			for _, p := range proxies[:2] { // only the break itself gets no reply
				p.CutReplyTo("\r\npart\r\n", 0)
			}
			if _, err := operator.BreakLease(t.Context(), b); !errors.Is(err, store.ErrQuorum) {
				t.Fatalf("break without replies: %v, want %v", err, store.ErrQuorum)
			}
			for _, p := range proxies[:2] {
				p.Await(t, "the reply was lost", func(st faultproxy.Stats) bool { return st.Cut > 0 })
			}
			if err := s.Renew(t.Context(), []store.Lease{r})[0]; !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("renewal after all servers had the request: %v, want %v", err, store.ErrNotHeld)
			}
			eventually.True(t, "the break succeeds when it is repeated", func() bool {
				left, err := operator.BreakLease(t.Context(), b)
				return err == nil && left > 0
			})
			select {
			case o := <-done:
				t.Fatalf("the waiter was granted the lock beside a lease that is not over: %+v", o)
			default:
			}
			breakNow(t, operator, b)
			mustRelease(t, s, c[1], grantedSoon(t, done))
			eventually.True(t, "no keys are left", noLock(t, servers, r.Name))
		})
	}
}

// A server that has just been emptied, and is in quarantine, refuses a broken lease as the
// others do, and hands nothing on.
func TestBreakOfKindsInQuarantine(t *testing.T) {
	t.Parallel()
	for what, c := range breakables() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			servers := redistest.StartN(t, 3)
			o := &redisstore.Options{NodeTimeout: 2 * time.Second, ConnectTimeout: long, MaxTTL: time.Minute}
			s := open(t, addrs(servers), o)
			for _, server := range servers {
				server.Declare()
			}
			c[0].TTL, c[1].TTL = o.MaxTTL, o.MaxTTL
			r := acquireOnAll(t, s, c[0])
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := wait(t, ctx, s, servers, c[1])
			b := breakOf(t, s, r)
			restart(t, servers[0])
			eventually.True(t, "the server is in quarantine", func() bool {
				st, err := s.Inspect(t.Context(), r.Name)
				return err == nil && st.Nodes[0].Outcome == store.Quarantined
			})
			if left, err := s.BreakLease(t.Context(), b); err != nil || left <= 0 {
				t.Fatalf("break: %v left, %v, want more than 0", left, err)
			}
			if err := s.Renew(t.Context(), []store.Lease{r})[0]; !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("renew a broken lease: %v, want %v", err, store.ErrNotHeld)
			}
			breakNow(t, s, b)
			g := grantedSoon(t, done)
			if servers[0].Text(t, "EXISTS", r.Name) != "0" {
				t.Error("a server in quarantine has granted the lock")
			}
			mustRelease(t, s, c[1], g)
		})
	}
}

// A break with the token of an earlier lease leaves the later lease of a fixed owner alone.
func TestBreakLeavesALaterLeaseAlone(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 3)
	s := open(t, addrs(servers), patient())
	first := breakables()["fixed"][0]
	second := first
	second.Attempt = store.NewOwner()
	first = acquireOnAll(t, s, first)
	b := breakOf(t, s, first)
	mustRelease(t, s, first, store.Grant{})
	second = acquireOnAll(t, s, second)
	for _, b.Now = range []bool{false, true} {
		if _, err := s.BreakLease(t.Context(), b); !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("break with the token of an earlier lease: %v, want %v", err, store.ErrNotHeld)
		}
	}
	if err := s.Renew(t.Context(), []store.Lease{second})[0]; err != nil {
		t.Errorf("renew of the later lease: %v", err)
	}
}
