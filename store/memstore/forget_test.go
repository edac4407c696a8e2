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

// stepped is a store and the hand that moves its clock.
func stepped() (*Store, *clock.Instant) {
	now := clock.Instant(time.Hour)
	return New(&Options{Clock: clock.Func(func() clock.Instant { return now })}), &now
}

func (s *Store) take(t *testing.T, name string, ttl time.Duration) (store.Lease, fence.Token) {
	t.Helper()
	r := store.Lease{Name: name, Owner: store.NewOwner(), TTL: ttl}
	g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
	if err != nil {
		t.Fatal(err)
	}
	return r, g.Token
}

// A lock is held from its grant, not from when its holder began to wait.
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

func TestReleasedLocksAreForgotten(t *testing.T) {
	s, _ := stepped()
	var last fence.Token
	for range 3 {
		for i := range 10 {
			r, token := s.take(t, fmt.Sprint("lock ", i), time.Minute)
			if i == 0 {
				if token <= last {
					t.Fatalf("token %v of a lock that was forgotten, the one before was %v", token, last)
				}
				last = token
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(s.records); n != 0 {
			t.Fatalf("%d records of locks that nobody holds", n)
		}
	}
}

// TestAbandonedLocksAreForgotten: locks that expire and that nobody asks for
// again cost no memory for ever, and the many others that come and go neither
// stop that nor take their tokens back.
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
		t.Errorf("%d of %d leases are left, error %v", len(list), living, err)
	}
}

// TestTokensRiseThroughForgetting takes a few locks in all the ways a record
// can come and go.
func TestTokensRiseThroughForgetting(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s, now := stepped()
	last := make(map[string]fence.Token)
	held := make(map[string]store.Lease)
	grants, forgotten := 0, 0
	for range 5000 {
		name := fmt.Sprint(rng.IntN(12))
		if r, ok := held[name]; ok && rng.IntN(2) == 0 {
			_ = s.Release(t.Context(), store.ReleaseRequest{Lease: r}) // or it has expired
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
			t.Fatalf("token %v of %q, the one before was %v", g.Token, name, last[name])
		}
		if !had && last[name] > 0 {
			forgotten++
		}
		last[name], held[name] = g.Token, r
		grants++
	}
	if grants < 1000 || forgotten < 100 {
		t.Fatalf("%d grants, %d of them of forgotten locks: too few to show anything", grants, forgotten)
	}
}
