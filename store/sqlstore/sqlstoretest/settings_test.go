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

// A waiter blocks in the server for less than the server's timeout of a statement, so it is not
// cancelled and does not lose its place.
func TestStatementTimeout(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		schema := on.newSchema(t)
		s := on.open(t, schema, sqlstore.Options{}, on.statementTimeout)
		db := on.handle(t)
		l := lease("x")
		mustAcquire(t, s, l)
		first := wait(t, s, lease("x"))
		eventually.True(t, "the first waiter has its place", func() bool { return len(inspect(t, s, "x").Queue) == 1 })
		second := lease("x")
		second.TTL = 12 * time.Second // long enough to block for two seconds, and refreshed after 1.5 s
		w := wait(t, s, second)
		end := func() int64 {
			return on.number(t, db, schema, `SELECT coalesce(max(ends), 0) FROM S.places WHERE owner = ?`, second.Owner)
		}
		eventually.True(t, "the second waiter has its place", func() bool { return end() != 0 })
		made := end()
		eventually.True(t, "the place is refreshed", func() bool { return end() > made })
		if w.troubled() {
			t.Error("the second waiter reports trouble, want none")
		}
		mustRelease(t, s, l)
		first.granted(t)
		mustRelease(t, s, first.r.Lease)
		w.granted(t)
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
		mustAcquire(t, s, l)
		tx := begin(t, db, 0)
		if err := s.Hold(t.Context(), tx, aLease{Lease: l}); err != nil {
			t.Fatal(err)
		}
		on.exec(t, db, schema, `UPDATE S.locks SET ends = 1`)
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

// A waiter keeps its place if statement_timeout ends its calls while a transaction holds
// the lease before it.
func TestStatementTimeoutKeepsTheOrder(t *testing.T) {
	t.Parallel()
	schema := postgres.newSchema(t)
	short := postgres.open(t, schema, sqlstore.Options{}, "statement_timeout=1000")
	s := postgres.open(t, schema, sqlstore.Options{})
	db := postgres.handle(t)
	l := lease("x")
	holder := wait(t, s, l)
	holder.granted(t)
	queue := func(s *sqlstore.Store, n int) *waiter {
		w := wait(t, s, lease("x"))
		eventually.True(t, "the waiter has its place", func() bool { return len(inspect(t, s, "x").Queue) == n })
		return w
	}
	first := queue(short, 1)
	second := queue(s, 2)
	tx := begin(t, db, 0)
	if err := s.Hold(t.Context(), tx, aLease{Lease: l}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE `+schema+`.locks SET ends = 1`); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the server ends a call of the first waiter", first.troubled)
	// The row cannot be changed meanwhile, so the waiter keeps its place.
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	first.granted(t)
	select {
	case <-second.done:
		t.Error("the second waiter was granted the lock before the first")
	default:
	}
	mustRelease(t, short, first.r.Lease)
	second.granted(t)
}
