package redisstore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// breakables are leases of locks that several can hold, and for each one that a waiter wants.
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

// acquireOnAll acquires r, and sees to it that every server has it.
func acquireOnAll(t *testing.T, s *redisstore.Store, r store.Lease) store.Lease {
	t.Helper()
	r.Slots = acquire(t, s, r).Slots
	onAll(t, s, r)
	return r
}

// onAll renews r, the only lease of its lock, until every server has it.
func onAll(t *testing.T, s *redisstore.Store, r store.Lease) {
	t.Helper()
	eventually(t, "every server has the lease", func() bool {
		st, err := s.Inspect(t.Context(), r.Name)
		without := func(n store.NodeOutcome) bool { return n.Holder.Owner != r.Owner }
		return err == nil && !slices.ContainsFunc(st.Nodes, without) || s.Renew(t.Context(), []store.Lease{r})[0] != nil
	})
}

// breakNow breaks the lease of r at once.
func breakNow(t *testing.T, s *redisstore.Store, b store.BreakRequest) {
	t.Helper()
	b.Now = true
	if left, err := s.BreakLease(t.Context(), b); err != nil || left != 0 {
		t.Fatalf("break now: %v, %v", left, err)
	}
}

// A majority is enough to break the lease of a permit, a reader or a writer, and less is not.
// The server that was down has its part of the lease when it is back, and nothing comes of it.
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
				t.Fatalf("with one of three servers down: %v, %v", left, err)
			}
			if st, err := s.Inspect(t.Context(), r.Name); err != nil || !st.Holder.Broken || st.Broken == nil || st.Broken.Reason != "test" {
				t.Errorf("%+v, %v", st, err)
			}
			for range 3 {
				if err := s.Renew(t.Context(), []store.Lease{r})[0]; !errors.Is(err, store.ErrNotHeld) {
					t.Errorf("renewed: %v", err)
				}
			}
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: next}); !errors.Is(err, store.ErrBusy) {
				t.Errorf("the room of a broken lease, before its owner has left: %v", err)
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r, Renewed: true}); err != nil {
				t.Errorf("released by its owner: %v", err)
			}
			if left, err := operator.BreakLease(t.Context(), b); err != nil || left != 0 {
				t.Errorf("after the release: %v, %v", left, err)
			}
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: c[0]}); err == nil {
				t.Error("a late request brings the lease back")
			}
			next = acquireOnAll(t, s, next)
			b = breakOf(t, s, next)
			proxies[1].RefuseNew()
			proxies[1].Cut()
			for _, b.Now = range []bool{false, true} {
				if _, err := operator.BreakLease(t.Context(), b); !errors.Is(err, store.ErrQuorum) {
					t.Errorf("with two of three servers down: %v", err)
				}
			}
			proxies[1].Pass()
			eventually(t, "a majority is back", func() bool {
				left, err := operator.BreakLease(t.Context(), b)
				return err == nil && left == 0
			})
			if err := s.Renew(t.Context(), []store.Lease{next})[0]; !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("renewed: %v", err)
			}
		})
	}
}

// A server that lost a lease is not given it back after it was broken, be it at once or not, and
// hands it no place. The other servers have parts with other tokens once they were healed.
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
				t.Fatal(left, err)
			}
			for range 3 {
				if err := s.Renew(t.Context(), []store.Lease{r})[0]; !errors.Is(err, store.ErrNotHeld) || strings.Contains(err.Error(), "now held by") {
					t.Errorf("renewal: %v", err)
				}
			}
			tomb := "{" + r.Name + "}:gone:" + r.Owner
			if r.Attempt != "" {
				tomb += " " + r.Attempt
			}
			if servers[0].Text(t, "EXISTS", r.Name) != "0" || servers[0].Text(t, "EXISTS", tomb) != "1" {
				t.Error("healed, or without a tombstone")
			}
			breakNow(t, s, b)
			for _, server := range servers {
				if server.Text(t, "EXISTS", r.Name) != "0" || server.Text(t, "EXISTS", tomb) != "1" {
					t.Error("not ended, or without a tombstone")
				}
			}
			mustRelease(t, s, c[1], acquire(t, s, c[1]))
			breakNow(t, s, b) // again
		})
	}
}

// The replies to the request are lost. It may have been done, and doing it again is the same.
// Waiters get the room at once with Now.
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
			acquire(t, s, other)
			breakNow(t, operator, breakOf(t, operator, other)) // after which the servers know the script
			done := wait(t, t.Context(), s, servers, c[1])
			b := breakOf(t, operator, r)
			for _, p := range proxies[:2] { // the question of what to break is answered
				p.CutReplyTo("\r\npart\r\n", 0)
			}
			if _, err := operator.BreakLease(t.Context(), b); !errors.Is(err, store.ErrQuorum) {
				t.Fatalf("without replies: %v", err)
			}
			for _, p := range proxies[:2] {
				p.Await(t, "the reply was lost", func(st faultproxy.Stats) bool { return st.Cut > 0 })
			}
			if err := s.Renew(t.Context(), []store.Lease{r})[0]; !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("renewed, although all servers had the request: %v", err)
			}
			eventually(t, "broken once more", func() bool {
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
			eventually(t, "nothing is left", noLock(t, servers, r.Name))
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
			eventually(t, "the server is in quarantine", func() bool {
				st, err := s.Inspect(t.Context(), r.Name)
				return err == nil && st.Nodes[0].Outcome == store.Quarantined
			})
			if left, err := s.BreakLease(t.Context(), b); err != nil || left <= 0 {
				t.Fatal(left, err)
			}
			if err := s.Renew(t.Context(), []store.Lease{r})[0]; !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("renewed: %v", err)
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

// A fixed owner has another lease than the one that was shown: that one is left alone.
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
			t.Errorf("the token of the lease before: %v", err)
		}
	}
	if err := s.Renew(t.Context(), []store.Lease{second})[0]; err != nil {
		t.Errorf("renew of the later lease: %v", err)
	}
}
