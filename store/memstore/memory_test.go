package memstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return memstore.New(nil) }, storetest.Options{})
}

// TestClockCountsTTLs: leases end by the injected clock, to the nanosecond, and
// by nothing else.
func TestClockCountsTTLs(t *testing.T) {
	now := clock.Instant(time.Hour)
	s := memstore.New(&memstore.Options{Clock: clock.Func(func() clock.Instant { return now })})
	a := request("lock", 100*time.Millisecond)
	b := request("lock", time.Minute)
	first, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: a})
	if err != nil {
		t.Fatal(err)
	}

	now = now.Add(30 * time.Millisecond)
	var busy *store.BusyError
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: b}); !errors.As(err, &busy) || busy.ExpiresIn != 70*time.Millisecond {
		t.Fatalf("after 30 of 100 ms: %v, want busy for 70 ms", err)
	}
	if errs := s.Renew(t.Context(), []store.Lease{a}); errs[0] != nil {
		t.Fatal(errs[0])
	}
	less := a
	less.TTL = time.Millisecond
	if errs := s.Renew(t.Context(), []store.Lease{less}); errs[0] != nil {
		t.Fatal(errs[0])
	}

	now = now.Add(100*time.Millisecond - 1)
	if st, err := s.Inspect(t.Context(), "lock"); err != nil || st.ExpiresIn != 1 {
		t.Fatalf("a nanosecond before the end: %+v, %v", st, err)
	}
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: b}); !errors.Is(err, store.ErrBusy) {
		t.Fatalf("a nanosecond before the end: %v, want busy", err)
	}

	now++
	if st, err := s.Inspect(t.Context(), "lock"); err != nil || st.Held {
		t.Fatalf("at the end: %+v, %v", st, err)
	}
	if list, err := s.List(t.Context(), ""); err != nil || len(list) != 0 {
		t.Fatalf("at the end: %+v, %v", list, err)
	}
	if errs := s.Renew(t.Context(), []store.Lease{a}); !errors.Is(errs[0], store.ErrNotHeld) {
		t.Fatalf("renew at the end: %v", errs[0])
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: a}); !errors.Is(err, store.ErrNotHeld) {
		t.Fatalf("release at the end: %v", err)
	}
	second, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: b})
	if err != nil || second.Token <= first.Token {
		t.Fatalf("after the end: token %v, %v; the one before was %v", second.Token, err, first.Token)
	}
}

// TestStandingClockExpiresNothing: while the injected clock stands, no lease
// ends, whatever time the machine has.
func TestStandingClockExpiresNothing(t *testing.T) {
	s := memstore.New(&memstore.Options{Clock: clock.Func(func() clock.Instant { return 1 })})
	r := request("lock", store.MinTTL)
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err != nil {
		t.Fatal(err)
	}
	for end := clock.System().Now().Add(20 * store.MinTTL); clock.System().Now() < end; {
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("lock", store.MinTTL)}); !errors.Is(err, store.ErrBusy) {
			t.Fatalf("got %v, want busy", err)
		}
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
		t.Fatal(err)
	}
}

// TestWhichErrorComesFirst: a closed store says so even to a caller who has
// given up, and an invalid request is told what is wrong with it in any case.
func TestWhichErrorComesFirst(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s := memstore.New(nil)
	bad := request("", time.Second)
	if _, err := s.Acquire(ended, store.AcquireRequest{Lease: bad}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("invalid, on an ended context: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(ended, store.AcquireRequest{Lease: request("lock", time.Second)}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("closed, on an ended context: %v", err)
	}
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: bad}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("invalid, on a closed store: %v", err)
	}
}

func request(name string, ttl time.Duration) store.Lease {
	return store.Lease{Name: name, Owner: store.NewOwner(), TTL: ttl}
}

// A nil Context panics in words that name it, and leaves the store as it was.
func TestNilContextPanics(t *testing.T) {
	s := memstore.New(nil)
	defer s.Close()
	var none context.Context
	r := store.Lease{Name: "a", Owner: "me", TTL: time.Minute}
	for what, call := range map[string]func(){
		"Acquire": func() { s.Acquire(none, store.AcquireRequest{Lease: r}) },
		"Wait":    func() { s.Wait(none, store.WaitRequest{Lease: r}, nil) },
		"Reserve": func() { s.ReserveTokens(none, store.ReserveRequest{Lease: r, Count: 1}) },
		"Renew":   func() { s.Renew(none, []store.Lease{r}) },
		"Release": func() { s.Release(none, store.ReleaseRequest{Lease: r}) },
		"Inspect": func() { s.Inspect(none, "a") },
		"List":    func() { s.List(none, "") },
	} {
		func() {
			defer func() {
				if got := recover(); got != "memory: nil Context" {
					t.Errorf("%s with a nil Context: panic %v", what, got)
				}
			}()
			call()
		}()
	}
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
