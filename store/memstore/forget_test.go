package memstore

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// stepped returns a store and its clock, which only the test moves.
func stepped() (*engine, *clock.Instant) {
	now := clock.Instant(time.Hour)
	return newEngine(&Options{Clock: clock.Func(func() clock.Instant { return now })}), &now
}

// take acquires a free lock.
func (s *engine) take(t *testing.T, name string, ttl time.Duration) (store.Lease, fence.Token) {
	t.Helper()
	r := store.Lease{Name: name, Owner: store.NewOwner(), TTL: ttl}
	g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
	if err != nil {
		t.Fatal(err)
	}
	return r, g.Token
}

// State.HeldFor counts from the grant, not from when the holder began to wait.
func TestHeldFor(t *testing.T) {
	s, now := stepped()
	first, _ := s.take(t, "a", time.Minute)
	next := store.Lease{Name: "a", Owner: store.NewOwner(), TTL: time.Minute}
	got := make(chan error)
	go func() {
		_, err := s.Wait(t.Context(), store.WaitRequest{Lease: next}, func(error) { got <- nil })
		got <- err
	}()
	<-got
	*now = now.Add(20 * time.Second)
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: first}); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	*now = now.Add(5 * time.Second)
	if st, err := s.Inspect(t.Context(), "a"); err != nil || st.Holder.Owner != next.Owner || st.HeldFor != 5*time.Second {
		t.Errorf("held for %v, want 5s since the hand-off: %+v, %v", st.HeldFor, st, err)
	}
}

// A released lock has no record any more, and its next token is larger all the same.
func TestReleasedLocksAreForgotten(t *testing.T) {
	s, _ := stepped()
	var last fence.Token
	for range 3 {
		for i := range 10 {
			r, token := s.take(t, fmt.Sprint("lock ", i), time.Minute)
			if i == 0 {
				if token <= last {
					t.Fatalf("token %v after the record was forgotten, want more than %v", token, last)
				}
				last = token
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(s.records); n != 0 {
			t.Fatalf("%d records of released locks, want none", n)
		}
	}
}

// Locks that expire and that no caller asks for again are forgotten after a while, also
// while many other locks are acquired. Held locks are not forgotten.
func TestAbandonedLocksAreForgotten(t *testing.T) {
	const living = 500
	s, now := stepped()
	for i := range living {
		s.take(t, fmt.Sprint("living ", i), 1000*time.Hour)
	}
	most := 0
	for i := range 20 * living {
		s.take(t, fmt.Sprint("abandoned ", i), time.Second)
		*now = now.Add(2 * time.Second)
		most = max(most, len(s.records))
	}
	if limit := 2*living + 128; most > limit {
		t.Errorf("%d records for %d leases, want at most %d", most, living, limit)
	}
	list, err := s.List(t.Context(), "living ")
	if err != nil || len(list) != living {
		t.Errorf("%d leases are listed, error %v, want all %d held ones", len(list), err, living)
	}
}

// However records of a few locks come and go, by releases, expiry and forgetting, each grant
// of a lock has a larger token than the one before.
func TestTokensRiseThroughForgetting(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s, now := stepped()
	last := make(map[string]fence.Token)
	held := make(map[string]store.Lease)
	grants, forgotten := 0, 0
	for range 5000 {
		name := fmt.Sprint(rng.IntN(12))
		if r, ok := held[name]; ok && rng.IntN(2) == 0 {
			_ = s.Release(t.Context(), store.ReleaseRequest{Lease: r}) // fails if the lease has expired
			delete(held, name)
			continue
		}
		*now = now.Add(time.Duration(rng.IntN(20)) * time.Millisecond)
		_, had := s.records[name]
		r := store.Lease{Name: name, Owner: store.NewOwner(), TTL: time.Duration(1+rng.IntN(200)) * time.Millisecond}
		g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
		if err != nil {
			continue
		}
		if g.Token <= last[name] {
			t.Fatalf("token %v of %q, want more than %v", g.Token, name, last[name])
		}
		if !had && last[name] > 0 {
			forgotten++
		}
		last[name], held[name] = g.Token, r
		grants++
	}
	if grants < 1000 || forgotten < 100 {
		t.Fatalf("%d grants, %d of them of forgotten locks, want 1000 and 100 at least", grants, forgotten)
	}
}
