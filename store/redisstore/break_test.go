package redisstore_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// breakOf returns the request to break the lease of r, as an operator sees it.
func breakOf(t *testing.T, s *store.Store, r store.Lease) store.BreakRequest {
	t.Helper()
	st, err := s.Inspect(t.Context(), r.Name)
	if err != nil || !st.Held || st.Holder.Owner != r.Owner {
		t.Fatalf("inspect: %+v, %v, want the holder %s", st, err, r.Owner)
	}
	return store.BreakRequest{Name: r.Name, Owner: r.Owner, Token: st.Token, Reason: "test"}
}

// A majority is enough to break a lease, and less is not, whether the lease has a
// description or an attempt.
func TestBreakWithServersDown(t *testing.T) {
	t.Parallel()
	for what, r := range map[string]store.Lease{
		"described":     {Name: "described", Owner: store.NewOwner(), Meta: store.Holder{Host: "h", PID: 7}.Encode(), TTL: time.Minute},
		"not described": {Name: "not described", Owner: store.NewOwner(), TTL: time.Minute},
		"fixed":         {Name: "fixed", Owner: "me", Attempt: store.NewOwner(), TTL: time.Minute},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			servers := redistest.StartN(t, 3)
			s := open(t, addrs(servers), patient())
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err != nil {
				t.Fatal(err)
			}
			// A node that was connected late gets the lease with the next renewal.
			eventually.True(t, "every node has the lease", func() bool {
				st, err := s.Inspect(t.Context(), r.Name)
				misses := func(n store.NodeOutcome) bool { return n.Outcome != store.Taken || n.Holder.Owner != r.Owner }
				if err == nil && !slices.ContainsFunc(st.Nodes, misses) {
					return true
				}
				_ = s.Renew(t.Context(), []store.Lease{r})
				return false
			})
			servers[2].Text(t, "INCRBY", "{"+r.Name+"}:token", "1000") // its clock may be ahead
			b := breakOf(t, s, r)
			servers[0].Kill()
			if left, err := s.BreakLease(t.Context(), b); err != nil || left <= 0 || left > time.Minute {
				t.Fatalf("with one of three servers down: %v left, %v, want up to a minute", left, err)
			}
			if st, err := s.Inspect(t.Context(), r.Name); err != nil || !st.Holder.Broken || st.Broken == nil || st.Broken.Reason != "test" {
				t.Errorf("inspect: %+v, %v, want a broken holder with the reason", st, err)
			}
			if s.Renew(t.Context(), []store.Lease{r})[0] == nil {
				t.Error("a lease that is being broken is renewed")
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r, Undo: true}); err != nil {
				t.Errorf("release by its owner: %v", err)
			}
			if left, err := s.BreakLease(t.Context(), b); err != nil || left != 0 {
				t.Errorf("break after the release: %v left, %v, want 0", left, err)
			}
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err == nil {
				t.Error("a late request acquires the lock again")
			}
			next := store.Lease{Name: r.Name, Owner: store.NewOwner(), TTL: time.Minute}
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: next}); err != nil {
				t.Fatal(err)
			}
			b = breakOf(t, s, next)
			servers[1].Kill()
			for _, b.Now = range []bool{false, true} {
				if _, err := s.BreakLease(t.Context(), b); !errors.Is(err, store.ErrQuorum) {
					t.Errorf("with two of three servers down: %v, want %v", err, store.ErrQuorum)
				}
			}
		})
	}
}

// A lease that was broken is not restored on a server that has lost it.
func TestBrokenLeaseIsNotHealed(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 3)
	s := open(t, addrs(servers), &redisstore.Options{NodeTimeout: long, ConnectTimeout: long, MaxTTL: time.Minute})
	r := store.Lease{Name: "a", Owner: store.NewOwner(), TTL: time.Minute}
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err != nil {
		t.Fatal(err)
	}
	b := breakOf(t, s, r)
	servers[0].Text(t, "DEL", "a")
	if _, err := s.BreakLease(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := s.Renew(t.Context(), []store.Lease{r})[0]; !errors.Is(err, store.ErrNotHeld) || strings.Contains(err.Error(), "now held by") {
			t.Errorf("renewal: %v, want %v without a new holder", err, store.ErrNotHeld)
		}
	}
	// The lease may be renewed for as long as the last server takes to answer.
	if left := servers[0].Text(t, "PTTL", "{a}:gone:"+r.Owner); len(left) != 5 || left <= "65000" {
		t.Errorf("the tombstone lasts for %s ms, want more than 65000", left)
	}
	if servers[0].Text(t, "EXISTS", "a") != "0" || servers[0].Text(t, "EXISTS", "{a}:gone:"+r.Owner) != "1" {
		t.Error("the server has the lease again, or no tombstone")
	}
}

// The lease of another kind of client is left alone.
func TestBreakOfAnotherClientsLock(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 1)
	s := open(t, addrs(servers), nil)
	servers[0].Text(t, "SET", "a", "theirs", "PX", "60000")
	if _, err := s.BreakLease(t.Context(), store.BreakRequest{Name: "a", Owner: "theirs", Token: 1, Now: true}); !errors.Is(err, store.ErrUnsupported) {
		t.Errorf("%v, want %v", err, store.ErrUnsupported)
	}
	if servers[0].Text(t, "GET", "a") != "theirs" {
		t.Error("the key was changed")
	}
}

// With Now the lock is free at once, whatever describes its holder: a later version may add
// to that, and others may write what they like.
func TestBreakNowWhateverTheDescription(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1, 3} {
		s := open(t, addrs(redistest.StartN(t, count)), &redisstore.Options{NodeTimeout: long, ConnectTimeout: long, MaxTTL: time.Hour})
		for i, meta := range []string{"", "x", "x {", "{", "{}", `{"host":"h"}`, `{"host":"h","later":1}`, `{ "host":"h"}`, "{\"host\":\"\xff\"}", `{"since":-1}`} {
			for _, first := range []bool{false, true} { // broken before without Now
				r := request(fmt.Sprintf("%d %v", i, first))
				r.Meta, r.TTL = meta, time.Hour
				acquireOnAll(t, s, r)
				b := breakOf(t, s, r)
				if first {
					if _, err := s.BreakLease(t.Context(), b); err != nil {
						t.Fatal(err)
					}
				}
				b.Now = true
				if left, err := s.BreakLease(t.Context(), b); err != nil || left != 0 {
					t.Errorf("%d servers: break of a lease with the description %q: %v left, %v", count, meta, left, err)
				}
				if st, err := s.Inspect(t.Context(), r.Name); err != nil || st.Held {
					t.Errorf("%d servers: a lease with the description %q is over, and shown as %+v, %v", count, meta, st, err)
				}
			}
		}
	}
}
