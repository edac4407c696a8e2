package sqlstoretest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
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

// mustGet waits for a lock and releases it.
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

// signals returns how many waiters have a signal. A waiter takes its signal soon after its place.
func signals(t testing.TB, on *bed, db *sql.DB, schema string) int64 {
	t.Helper()
	return on.number(t, db, schema, "SELECT COUNT(*) FROM S.places WHERE `signal` <> 0")
}

// A waiter blocks in the server while another holds the lock, and is woken by the
// release. It does not poll, however long that takes.
func TestWaitersAreWoken(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		s, schema := on.newStore(t)
		db := on.handle(t)
		first := lease("x")
		of := on.open(t, schema, sqlstore.Options{}) // the holder's, without waits so far
		holder := wait(t, of, lease("x"))
		holder.granted(t)
		second := wait(t, s, first)
		eventually.True(t, "the second has its place", func() bool { return len(inspect(t, s, "x").Queue) == 1 })
		third := wait(t, s, lease("x"))
		// The first lease was granted while the lock was free, so it has no signal until
		// the holder learns of the waiters when it renews.
		eventually.True(t, "two waiters", func() bool { return signals(t, on, db, schema) == 2 })
		if err := of.Renew(t.Context(), []store.Lease{holder.r.Lease})[0]; err != nil {
			t.Fatal(err)
		}
		blocked := func(want int64) {
			t.Helper()
			eventually.True(t, "waiters block in the server", func() bool {
				return on.number(t, db, schema, on.blocked) == want
			})
		}
		blocked(2)
		taken := []int64{
			on.number(t, db, schema, "SELECT `signal` FROM S.locks"),
			on.number(t, db, schema, "SELECT MIN(`signal`) FROM S.places"), on.number(t, db, schema, "SELECT MAX(`signal`) FROM S.places"),
		}
		mustRelease(t, of, holder.r.Lease)
		second.granted(t)
		blocked(1)
		mustRelease(t, s, second.r.Lease)
		third.granted(t)
		mustRelease(t, s, third.r.Lease)
		// No session keeps a signal.
		for _, signal := range taken {
			eventually.True(t, "no signal is left", func() bool { return on.number(t, db, schema, on.free, signal) == 1 })
		}
	})
}

// A waiter that gets no connection of its own polls, and takes one later.
func TestWaiterFindsAConnectionLater(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		schema := on.newSchema(t)
		s := on.open(t, schema, sqlstore.Options{Connections: 1})
		db := on.handle(t)
		for _, name := range []string{"a", "b"} {
			mustAcquire(t, s, lease(name))
		}
		first := wait(t, s, lease("a")) // it has the only connection
		eventually.True(t, "the first waiter has its connection", func() bool { return signals(t, on, db, schema) == 1 })
		l := lease("b")
		second := wait(t, s, l)
		signal := func() int64 {
			return on.number(t, db, schema, "SELECT COALESCE(MAX(`signal`), 0) FROM S.places WHERE owner = ?", l.Owner)
		}
		eventually.True(t, "the second waiter has its place", func() bool { return len(inspect(t, s, "b").Queue) == 1 })
		if signal() != 0 {
			t.Error("the second waiter has a connection, while one is allowed")
		}
		first.cancel()
		<-first.done
		eventually.True(t, "the second waiter has a connection", func() bool { return signal() != 0 })
		second.cancel()
		<-second.done
	})
}

// A waiter without a signal delays only itself: the waiter behind it is woken by the holder before
// it.
func TestWaiterBehindOneWithoutASignalIsWoken(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		s, schema := on.newStore(t)
		db := on.handle(t)
		l, of := lease("x"), on.open(t, schema, sqlstore.Options{}) // the holder's
		mustAcquire(t, of, l)
		polling := wait(t, on.open(t, schema, sqlstore.Options{Connections: -1}), lease("x"))
		eventually.True(t, "a waiter polls", func() bool { return len(inspect(t, s, "x").Queue) == 1 })
		third := wait(t, s, lease("x"))
		eventually.True(t, "another waiter has a signal", func() bool { return signals(t, on, db, schema) == 1 })
		if err := of.Renew(t.Context(), []store.Lease{l})[0]; err != nil { // the holder learns of the waiters
			t.Fatal(err)
		}
		eventually.True(t, "the third waiter blocks in the server", func() bool {
			return on.number(t, db, schema, on.blocked) == 1
		})
		mustRelease(t, of, l)
		polling.granted(t)
		mustRelease(t, s, polling.r.Lease)
		third.granted(t)
		mustRelease(t, s, third.r.Lease)
	})
}

// Waiters leave connections to other calls, also if the limit of the handle was set after the store was
// opened.
func TestWaitersLeaveConnections(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		other, schema := on.newStore(t)
		db, watch := on.handle(t), on.handle(t)
		s, err := sqlstore.New(t.Context(), db, on.dialect, &sqlstore.Options{Schema: schema})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		const conns = 4
		db.SetMaxOpenConns(conns)
		l := lease("mine")
		mustAcquire(t, s, l)
		for i := range conns {
			name := fmt.Sprint("held ", i)
			mustAcquire(t, other, lease(name))
			wait(t, s, lease(name))
			eventually.True(t, "the waiter has its place", func() bool { return len(inspect(t, other, name).Queue) == 1 })
		}
		eventually.True(t, "waiters have signals", func() bool { return signals(t, on, watch, schema) >= conns/2 })
		if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
			t.Errorf("renew while others wait: %v", err)
		}
	})
}
