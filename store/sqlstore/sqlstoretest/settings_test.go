package sqlstoretest

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// The store reads names and holders in every format in which the server writes bytes as text, and in
// every protocol mode of the driver.
func TestAnyFormatOfBytes(t *testing.T) {
	t.Parallel()
	schema := postgres.newSchema(t)
	for _, mode := range []string{"exec", "simple_protocol", "cache_statement"} {
		t.Run(mode, func(t *testing.T) {
			s := postgres.open(t, schema, sqlstore.Options{}, setting("bytea_output", "escape"), setting("default_query_exec_mode", mode))
			l := lease("a\\b\x00\xff' in " + mode)
			l.Meta = store.Holder{Purpose: `a\b'"`}.Encode()
			mustAcquire(t, s, l)
			_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: lease(l.Name)})
			var busy *store.BusyError
			if !errors.As(err, &busy) || busy.Holder.Owner != l.Owner || busy.Holder.Purpose != `a\b'"` {
				t.Errorf("acquire a lock that is held: %v, want a *BusyError that names the holder and its purpose", err)
			}
			if got := inspect(t, s, l.Name); got.Holder.Purpose != `a\b'"` {
				t.Errorf("inspect: %+v, want the purpose of the holder", got)
			}
			list, err := s.List(t.Context(), l.Name)
			if err != nil || len(list) != 1 || list[0].Name != l.Name || list[0].Holder.Purpose != `a\b'"` {
				t.Errorf("list: %+v, %v, want one lock with the purpose of its holder", list, err)
			}
			mustRelease(t, s, l)
		})
	}
}

// Waiters go on, in their order, if the server has a short limit for a statement, a transaction that is
// idle, and a session.
func TestStatementTimeout(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		schema := on.newSchema(t)
		s := on.open(t, schema, sqlstore.Options{}, on.limits...)
		l := lease("x")
		l.TTL = 5 * time.Second
		mustAcquire(t, s, l)
		other := on.open(t, schema, sqlstore.Options{}, on.limits...)
		var waiters []*waiter
		for i := range 2 {
			waiters = append(waiters, wait(t, other, lease("x")))
			eventually.True(t, "the waiter has its place", func() bool { return len(inspect(t, s, "x").Queue) == i+1 })
		}
		waiters[0].granted(t) // when the lease has ended: the sessions of the waiters are over by then
		if waiters[0].troubled() {
			t.Error("the waiter reports trouble, want none")
		}
		mustRelease(t, other, waiters[0].r.Lease)
		waiters[1].granted(t)
	})
}

// A waiter goes on although the server ends its calls because of a short lock timeout while a
// transaction holds the lease before it.
func TestLockTimeout(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		schema := on.newSchema(t)
		s := on.open(t, schema, sqlstore.Options{Timeout: 2 * time.Second}, on.lockTimeout)
		db := on.handle(t)
		l := lease("x")
		l.TTL = time.Second
		mustAcquire(t, s, l)
		tx := begin(t, db, 0)
		if err := sqlstore.Hold(t.Context(), s, tx, aLease{Lease: l}); err != nil {
			t.Fatal(err)
		}
		w := wait(t, s, lease("x"))
		eventually.True(t, "the waiter reports the trouble", func() bool {
			select {
			case <-w.done:
				t.Fatalf("the wait has ended: %v", w.err)
			default:
			}
			return w.troubled()
		})
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		w.granted(t)
	})
}
