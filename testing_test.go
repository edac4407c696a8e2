package leasehold_test

import (
	"context"
	"math"
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

// virtual is the clock of a synctest bubble. It moves with the bubble's time. The shift moves
// the clock alone, as while a machine is suspended, when its timers stand still.
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

// script is an engine whose methods a test can replace. It keeps no queue.
type script struct {
	store.Engine
	mu      sync.Mutex
	acquire func(context.Context, store.AcquireRequest) (store.Grant, error)
	renew   func(context.Context, []store.Lease) []error
	release func(context.Context, store.ReleaseRequest) error
	calls   map[string]int
}

func scripted(s store.Engine) *script { return &script{Engine: s, calls: map[string]int{}} }

func (s *script) Caps() store.Caps {
	c := s.Engine.Caps()
	c.NoQueue, c.NoBreaks, c.Notifies, c.Rejoins = true, true, false, false
	return c
}

// plain is an engine that keeps no queue, and does not tell of broken leases.
type plain struct{ store.Engine }

func (p plain) Caps() store.Caps {
	c := p.Engine.Caps()
	c.NoQueue, c.Notifies, c.Rejoins = true, false, false
	return c
}

// called counts a call and returns the test's replacement of the method, or nil.
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
	return s.Engine.Acquire(ctx, r)
}

func (s *script) Renew(ctx context.Context, rs []store.Lease) []error {
	if f := called(s, "renew", &s.renew); f != nil {
		return f(ctx, rs)
	}
	return s.Engine.Renew(ctx, rs)
}

func (s *script) Release(ctx context.Context, r store.ReleaseRequest) error {
	if f := called(s, "release", &s.release); f != nil {
		return f(ctx, r)
	}
	return s.Engine.Release(ctx, r)
}

// all is a Renew that returns err for every lease.
func all(err error) func(context.Context, []store.Lease) []error {
	return func(_ context.Context, rs []store.Lease) []error {
		errs := make([]error, len(rs))
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
}

// bench is a client with a scripted store in memory, both on one virtual clock. It is for use
// inside a synctest bubble.
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
	return &bench{t: t, clock: v, store: s, c: leasehold.New(store.New(s), &leasehold.Options{Clock: v})}
}

// other returns a client of the same locks, as another process has it.
func (b *bench) other() *leasehold.Client {
	return leasehold.New(store.New(b.store.Engine), &leasehold.Options{Clock: b.clock})
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

// held reports whether the lock is held in the store.
func (b *bench) held(name string) bool {
	b.t.Helper()
	st, err := b.store.Inspect(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	return st.Held
}

const forever = time.Duration(math.MaxInt64)
