package leasehold_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// virtual is the clock of a synctest bubble: it moves with the bubble's time,
// and shift moves it alone, as a suspended machine's does.
type virtual struct {
	mu    sync.Mutex
	start time.Time
	shift time.Duration
}

func newVirtual() *virtual { return &virtual{start: time.Now()} }

func (v *virtual) Now() clock.Instant {
	v.mu.Lock()
	defer v.mu.Unlock()
	return clock.Instant(time.Since(v.start)+v.shift) + 1
}

func (v *virtual) suspend(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shift += d
}

// script is a store whose answers a test can take into its own hands.
type script struct {
	store.Store
	mu      sync.Mutex
	acquire func(context.Context, store.AcquireRequest) (store.Grant, error)
	renew   func(context.Context, []store.Lease) []error
	release func(context.Context, store.ReleaseRequest) error
	calls   map[string]int
}

func scripted(s store.Store) *script { return &script{Store: s, calls: map[string]int{}} }

// called counts a call and returns who answers it, nil for the store itself.
func called[F any](s *script, what string, f *F) F {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[what]++
	return *f
}

func (s *script) onAcquire(f func(context.Context, store.AcquireRequest) (store.Grant, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acquire = f
}

func (s *script) onRenew(f func(context.Context, []store.Lease) []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renew = f
}

func (s *script) onRelease(f func(context.Context, store.ReleaseRequest) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release = f
}

func (s *script) called(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[what]
}

func (s *script) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	if f := called(s, "acquire", &s.acquire); f != nil {
		return f(ctx, r)
	}
	return s.Store.Acquire(ctx, r)
}

func (s *script) Renew(ctx context.Context, rs []store.Lease) []error {
	if f := called(s, "renew", &s.renew); f != nil {
		return f(ctx, rs)
	}
	return s.Store.Renew(ctx, rs)
}

func (s *script) Release(ctx context.Context, r store.ReleaseRequest) error {
	if f := called(s, "release", &s.release); f != nil {
		return f(ctx, r)
	}
	return s.Store.Release(ctx, r)
}

// all answers every lease of a batch with err.
func all(err error) func(context.Context, []store.Lease) []error {
	return func(_ context.Context, rs []store.Lease) []error {
		errs := make([]error, len(rs))
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
}

// bench is a client over a scripted memory store, all on one virtual clock. It
// is for use inside a synctest bubble.
type bench struct {
	t     *testing.T
	clock *virtual
	store *script
	c     *leasehold.Client
}

func newBench(t *testing.T) *bench {
	v := newVirtual()
	m := memstore.New(&memstore.Options{Clock: v})
	t.Cleanup(func() { m.Close() })
	s := scripted(m)
	return &bench{t: t, clock: v, store: s, c: leasehold.New(s, &leasehold.Options{Clock: v})}
}

// other is another client of the same locks, as another process is.
func (b *bench) other() *leasehold.Client {
	return leasehold.New(b.store.Store, &leasehold.Options{Clock: b.clock})
}

func (b *bench) acquire(l *leasehold.Lock) *leasehold.Lease {
	b.t.Helper()
	lease, err := l.Acquire(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return lease
}

func (b *bench) release(l *leasehold.Lease) {
	b.t.Helper()
	if err := l.Release(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// held says whether anybody holds the lock in the store.
func (b *bench) held(name string) bool {
	b.t.Helper()
	st, err := b.store.Inspect(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	return st.Held
}
