package sqlstoretest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

func mustAcquire(t testing.TB, s *store.Store, l store.Lease) store.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
	if err != nil {
		t.Fatalf("acquire %q: %v", l.Name, err)
	}
	return g
}

// mustGet waits for a lock and releases it.
func mustGet(t testing.TB, s *store.Store, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l := lease(name)
	if _, err := s.Wait(ctx, store.WaitRequest{Lease: l}, nil); err != nil {
		t.Fatalf("wait for %q: %v", name, err)
	}
	mustRelease(t, s, l)
}

func mustRelease(t testing.TB, s *store.Store, l store.Lease) {
	t.Helper()
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
		t.Fatalf("release %q: %v", l.Name, err)
	}
}

func inspect(t testing.TB, s *store.Store, name string) store.State {
	t.Helper()
	st, err := s.Inspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// waiter is a pending Wait.
type waiter struct {
	r      store.WaitRequest
	cancel context.CancelFunc
	done   chan struct{}
	g      store.Grant
	err    error

	mu      sync.Mutex
	reasons []error
}

func wait(t testing.TB, s *store.Store, l store.Lease) *waiter {
	ctx, cancel := context.WithCancel(t.Context())
	w := &waiter{r: store.WaitRequest{Lease: l}, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.g, w.err = s.Wait(ctx, w.r, func(why error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.reasons = append(w.reasons, why)
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-w.done
	})
	return w
}

// troubled reports whether the waiter has reported trouble with the server.
func (w *waiter) troubled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, why := range w.reasons {
		if errors.Is(why, store.ErrQuorum) {
			return true
		}
	}
	return false
}

// granted waits until the lock is granted.
func (w *waiter) granted(t testing.TB) store.Grant {
	t.Helper()
	select {
	case <-w.done:
	case <-time.After(patience):
		t.Fatal("the waiter is not granted the lock")
	}
	if w.err != nil {
		t.Fatalf("wait: %v", w.err)
	}
	return w.g
}

// logged is a log in memory.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
