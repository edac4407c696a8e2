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
	storetest.Run(t, func(*testing.T) *store.Store { return memstore.New(nil) }, storetest.Options{})
}

// Leases end by the injected clock, to the nanosecond.
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
		t.Fatalf("a nanosecond before the end: %+v, %v, want it to expire in 1ns", st, err)
	}
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: b}); !errors.Is(err, store.ErrBusy) {
		t.Fatalf("a nanosecond before the end: %v, want busy", err)
	}

	now++
	if st, err := s.Inspect(t.Context(), "lock"); err != nil || st.Held {
		t.Fatalf("inspect at the end: %+v, %v, want a free lock", st, err)
	}
	if list, err := s.List(t.Context(), ""); err != nil || len(list) != 0 {
		t.Fatalf("list at the end: %+v, %v, want no lock", list, err)
	}
	if errs := s.Renew(t.Context(), []store.Lease{a}); !errors.Is(errs[0], store.ErrNotHeld) {
		t.Fatalf("renew at the end: %v, want ErrNotHeld", errs[0])
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: a}); !errors.Is(err, store.ErrNotHeld) {
		t.Fatalf("release at the end: %v, want ErrNotHeld", err)
	}
	second, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: b})
	if err != nil || second.Token <= first.Token {
		t.Fatalf("after the end: token %v, %v, want more than %v", second.Token, err, first.Token)
	}
}

// While the injected clock stands still, no lease ends, however much time passes.
func TestStandingClockExpiresNothing(t *testing.T) {
	s := memstore.New(&memstore.Options{Clock: clock.Func(func() clock.Instant { return 1 })})
	r := request("lock", store.MinTTL)
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err != nil {
		t.Fatal(err)
	}
	for end := clock.System().Now().Add(20 * store.MinTTL); clock.System().Now() < end; {
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("lock", store.MinTTL)}); !errors.Is(err, store.ErrBusy) {
			t.Fatalf("acquire of a held lock: %v, want ErrBusy", err)
		}
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
		t.Fatal(err)
	}
}

// A closed store returns ErrClosed also if the context has ended. An invalid request gets
// ErrInvalid in any case.
func TestWhichErrorComesFirst(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s := memstore.New(nil)
	bad := request("", time.Second)
	if _, err := s.Acquire(ended, store.AcquireRequest{Lease: bad}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("an invalid request with an ended context: %v, want ErrInvalid", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(ended, store.AcquireRequest{Lease: request("lock", time.Second)}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a closed store and an ended context: %v, want ErrClosed", err)
	}
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: bad}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("an invalid request to a closed store: %v, want ErrInvalid", err)
	}
}

func request(name string, ttl time.Duration) store.Lease {
	return store.Lease{Name: name, Owner: store.NewOwner(), TTL: ttl}
}

// A nil Context panics with a message that says so, and leaves the store as it was.
func TestNilContextPanics(t *testing.T) {
	s := memstore.New(nil)
	defer s.Close()
	var none context.Context
	r := store.Lease{Name: "a", Owner: "me", TTL: time.Minute}
	for what, call := range map[string]func(){
		"Acquire": func() { s.Acquire(none, store.AcquireRequest{Lease: r}) },
		"Wait":    func() { s.Wait(none, store.WaitRequest{Lease: r}, nil) },
		"Renew":   func() { s.Renew(none, []store.Lease{r}) },
		"Release": func() { s.Release(none, store.ReleaseRequest{Lease: r}) },
		"Inspect": func() { s.Inspect(none, "a") },
		"List":    func() { s.List(none, "") },
	} {
		func() {
			defer func() {
				if got := recover(); got != "store: nil Context" {
					t.Errorf("%s with a nil Context: panic %v, want \"store: nil Context\"", what, got)
				}
			}()
			call()
		}()
	}
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err != nil {
		t.Errorf("acquire afterwards: %v, want a grant", err)
	}
}
