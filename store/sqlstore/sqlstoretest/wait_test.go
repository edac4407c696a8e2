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
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

func mustAcquire(t testing.TB, s *sqlstore.Store, l store.Lease) store.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
	if err != nil {
		t.Fatalf("acquire %q: %v", l.Name, err)
	}
	return g
}

// mustGet gets a lock that is free soon.
func mustGet(t testing.TB, s *sqlstore.Store, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l := lease(name)
	if _, err := s.Wait(ctx, store.WaitRequest{Lease: l}, nil); err != nil {
		t.Fatalf("wait for %q: %v", name, err)
	}
	mustRelease(t, s, l)
}

func mustRelease(t testing.TB, s *sqlstore.Store, l store.Lease) {
	t.Helper()
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
		t.Fatalf("release %q: %v", l.Name, err)
	}
}

func inspect(t testing.TB, s *sqlstore.Store, name string) store.State {
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

func wait(t testing.TB, s *sqlstore.Store, l store.Lease) *waiter {
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

// troubled reports whether the waiter was told of trouble with the server.
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
		t.Fatal("a waiter is not granted the lock")
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

// A waiter blocks in the server while another holds the lock, and is woken by the
// release. It does not poll, however long that takes.
func TestWaitersAreWoken(t *testing.T) {
	t.Parallel()
	s, schema := newStore(t)
	db := database(t, dsn(postgres))
	first := lease("x")
	holder := wait(t, s, lease("x"))
	holder.granted(t)
	second := wait(t, s, first)
	eventually(t, "the second has its place", func() bool { return len(inspect(t, s, "x").Queue) == 1 })
	third := wait(t, s, lease("x"))
	// The first lease was granted while the lock was free, so it has no signal until
	// the holder learns, when it renews, that somebody waits.
	eventually(t, "two waiters", func() bool { return len(inspect(t, s, "x").Queue) == 2 })
	if err := s.Renew(t.Context(), []store.Lease{holder.r.Lease})[0]; err != nil {
		t.Fatal(err)
	}
	blocked := func(want int) {
		t.Helper()
		eventually(t, "waiters block in the server", func() bool {
			var n int
			err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND query LIKE $1`, "%"+schema+".await(%").Scan(&n)
			if err != nil {
				t.Fatal(err)
			}
			return n == want
		})
	}
	blocked(2)
	mustRelease(t, s, holder.r.Lease)
	second.granted(t)
	blocked(1)
	mustRelease(t, s, second.r.Lease)
	third.granted(t)
	mustRelease(t, s, third.r.Lease)
	// No session keeps a signal.
	eventually(t, "no signal is left", func() bool {
		var n int
		err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
			WHERE l.locktype = 'advisory' AND a.query LIKE $1`, "%"+schema+".%").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
}

// A waiter that found no connection for itself polls, and takes one later.
func TestWaiterFindsAConnectionLater(t *testing.T) {
	t.Parallel()
	schema := newSchema(t, postgres)
	s := open(t, dsn(postgres), schema, sqlstore.Options{Connections: 1})
	db := database(t, dsn(postgres))
	for _, name := range []string{"a", "b"} {
		mustAcquire(t, s, lease(name))
	}
	first := wait(t, s, lease("a")) // it has the only connection
	eventually(t, "the first waiter has its place", func() bool { return len(inspect(t, s, "a").Queue) == 1 })
	l := lease("b")
	second := wait(t, s, l)
	signal := func() (n int64) {
		if err := db.QueryRowContext(t.Context(), "SELECT coalesce(max(signal), 0) FROM "+schema+".places WHERE owner = $1", l.Owner).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	eventually(t, "the second waiter has its place", func() bool { return len(inspect(t, s, "b").Queue) == 1 })
	if signal() != 0 {
		t.Error("the second waiter has a connection, while one is allowed")
	}
	first.cancel()
	<-first.done
	eventually(t, "the second waiter has a connection", func() bool { return signal() != 0 })
	second.cancel()
	<-second.done
}
