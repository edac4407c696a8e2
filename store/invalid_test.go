package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// untouchable is an engine that no request may reach: every method but Caps panics.
type untouchable struct {
	store.Engine
	caps store.Caps
}

func (e untouchable) Caps() store.Caps { return e.caps }

// invalid lists what a Store refuses in every request that takes a Lease.
var invalid = map[string]func(l *store.Lease){
	"empty name":                    func(l *store.Lease) { l.Name = "" },
	"name too long":                 func(l *store.Lease) { l.Name = strings.Repeat("x", store.MaxName+1) },
	"name of a key of the store":    func(l *store.Lease) { l.Name = "leasehold:x" },
	"name of a counter":             func(l *store.Lease) { l.Name = "{x}:token" },
	"name of a place in the queue":  func(l *store.Lease) { l.Name = "{x}:place:" + l.Owner },
	"empty owner":                   func(l *store.Lease) { l.Owner = "" },
	"owner too long":                func(l *store.Lease) { l.Owner = strings.Repeat("x", store.MaxOwner+1) },
	"owner with space":              func(l *store.Lease) { l.Owner = "a b" },
	"owner with break":              func(l *store.Lease) { l.Owner = "a\nb" },
	"owner with NUL":                func(l *store.Lease) { l.Owner = "a\x00" },
	"owner not ASCII":               func(l *store.Lease) { l.Owner = "ä" },
	"attempt with space":            func(l *store.Lease) { l.Attempt = "a b" },
	"meta too long":                 func(l *store.Lease) { l.Meta = strings.Repeat("x", store.MaxMeta+1) },
	"negative weight":               func(l *store.Lease) { l.Weight = -1 },
	"weight over the limit":         func(l *store.Lease) { l.Weight = math.MaxInt64 },
	"negative limit":                func(l *store.Lease) { l.Kind.Limit = -1 },
	"no TTL":                        func(l *store.Lease) { l.TTL = 0 },
	"negative TTL":                  func(l *store.Lease) { l.TTL = -time.Second },
	"most negative TTL":             func(l *store.Lease) { l.TTL = math.MinInt64 },
	"TTL under the store's minimum": func(l *store.Lease) { l.TTL = 9 * time.Millisecond },
	"TTL over the store's maximum":  func(l *store.Lease) { l.TTL = time.Minute + 1 },
	"longest duration as TTL":       func(l *store.Lease) { l.TTL = math.MaxInt64 },
}

func lease() store.Lease {
	return store.Lease{Name: "invoices/42", Owner: store.NewOwner(), Kind: store.ReadWrite, Weight: store.ReadWriteLimit, TTL: time.Second}
}

// An engine sees valid requests only: Store refuses the others.
func TestInvalidRequestsReachNoEngine(t *testing.T) {
	s := store.New(untouchable{caps: store.Caps{MinTTL: 10 * time.Millisecond, MaxTTL: time.Minute}})
	ctx := t.Context()
	for what, spoil := range invalid {
		l, good := lease(), lease()
		spoil(&l)
		refused := func(verb string, err error) {
			t.Helper()
			if !errors.Is(err, store.ErrInvalid) {
				t.Errorf("%s: %s: got error %v, want one that matches store.ErrInvalid", verb, what, err)
			}
		}
		_, err := s.Acquire(ctx, store.AcquireRequest{Lease: l})
		refused("acquire", err)
		_, err = s.Wait(ctx, store.WaitRequest{Lease: l}, nil)
		refused("wait", err)
		refused("renew", s.Renew(ctx, []store.Lease{l})[0])
		refused("release", s.Release(ctx, store.ReleaseRequest{Lease: l}))
		_, err = s.ReleaseAndRejoin(ctx, store.ReleaseRequest{Lease: good}, store.WaitRequest{Lease: l})
		refused("rejoin", err)
		_, err = s.ReleaseAndRejoin(ctx, store.ReleaseRequest{Lease: l}, store.WaitRequest{Lease: good})
		refused("release and rejoin", err)
		_, err = s.Downgrade(ctx, l)
		refused("downgrade", err)
		if store.CheckName(l.Name) != nil {
			_, err = s.Inspect(ctx, l.Name)
			refused("inspect", err)
			refused("resize", s.Resize(ctx, l.Name, store.Semaphore(1), store.Semaphore(2)))
		}
	}
	for what, f := range map[string]func(good store.Lease) error{
		"rejoin for another lock": func(good store.Lease) error {
			next := lease()
			next.Name += "/other"
			_, err := s.ReleaseAndRejoin(ctx, store.ReleaseRequest{Lease: good}, store.WaitRequest{Lease: next})
			return err
		},
		"rejoin for the same owner": func(good store.Lease) error {
			_, err := s.ReleaseAndRejoin(ctx, store.ReleaseRequest{Lease: good}, store.WaitRequest{Lease: good})
			return err
		},
		"downgrade a reader": func(good store.Lease) error {
			good.Weight = 1
			_, err := s.Downgrade(ctx, good)
			return err
		},
		"downgrade a semaphore": func(good store.Lease) error {
			good.Kind, good.Weight = store.Semaphore(2), 2
			_, err := s.Downgrade(ctx, good)
			return err
		},
		"resize a read-write lock": func(good store.Lease) error {
			return s.Resize(ctx, good.Name, store.ReadWrite, store.Semaphore(2))
		},
		"resize to a read-write lock": func(good store.Lease) error {
			return s.Resize(ctx, good.Name, store.Semaphore(2), store.ReadWrite)
		},
		"resize to a negative limit": func(good store.Lease) error {
			return s.Resize(ctx, good.Name, store.Semaphore(2), store.Semaphore(-1))
		},
	} {
		if err := f(lease()); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: got error %v, want one that matches store.ErrInvalid", what, err)
		}
	}
	for what, spoil := range map[string]func(*store.BreakRequest){
		"no name":         func(b *store.BreakRequest) { b.Name = "" },
		"no owner":        func(b *store.BreakRequest) { b.Owner = "" },
		"no token":        func(b *store.BreakRequest) { b.Token = 0 },
		"by too long":     func(b *store.BreakRequest) { b.By = strings.Repeat("x", store.MaxNote+1) },
		"reason too long": func(b *store.BreakRequest) { b.Reason = strings.Repeat("x", store.MaxNote+1) },
	} {
		b := store.BreakRequest{Name: "invoices/42", Owner: store.NewOwner(), Token: 1}
		spoil(&b)
		if _, err := s.BreakLease(ctx, b); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("break a lease with %s: got error %v, want one that matches store.ErrInvalid", what, err)
		}
	}
}

// A store that keeps only mutexes refuses other kinds, and names the kind.
func TestOtherKindsReachNoEngine(t *testing.T) {
	s := store.New(untouchable{caps: store.Caps{MutexesOnly: true}})
	for _, kind := range []store.Kind{store.Semaphore(2), store.ReadWrite} {
		l := lease()
		l.Kind, l.Weight = kind, 1
		_, acquired := s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
		_, waited := s.Wait(t.Context(), store.WaitRequest{Lease: l}, nil)
		for verb, err := range map[string]error{"acquire": acquired, "wait for": waited} {
			if !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), kind.String()) {
				t.Errorf("%s a %v: got error %v, want one that matches store.ErrUnsupported and names it", verb, kind, err)
			}
		}
	}
}

// renewer renews every lease that reaches it, and keeps their owners.
type renewer struct {
	untouchable
	owners []string
}

func (e *renewer) Renew(_ context.Context, leases []store.Lease) []error {
	errs := make([]error, len(leases))
	for i, l := range leases {
		e.owners = append(e.owners, l.Owner)
		if l.Meta == "lost" {
			errs[i] = store.ErrNotHeld
		}
	}
	return errs
}

// An invalid lease does not keep the others from being renewed, and each result is at its place.
func TestRenewSparesTheValidLeases(t *testing.T) {
	e := &renewer{}
	s := store.New(e)
	bad, lost, good := lease(), lease(), lease()
	bad.TTL, lost.Meta = 0, "lost"
	errs := s.Renew(t.Context(), []store.Lease{bad, lost, bad, good})
	want := []error{store.ErrInvalid, store.ErrNotHeld, store.ErrInvalid, nil}
	for i := range want {
		if !errors.Is(errs[i], want[i]) {
			t.Errorf("renew: result %d is %v, want %v", i, errs[i], want[i])
		}
	}
	if got, want := fmt.Sprint(e.owners), fmt.Sprint([]string{lost.Owner, good.Owner}); got != want {
		t.Errorf("the engine was asked to renew %s, want %s", got, want)
	}
	if errs := s.Renew(t.Context(), nil); len(errs) != 0 {
		t.Errorf("renew of no leases: %v", errs)
	}
}
