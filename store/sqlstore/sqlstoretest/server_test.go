package sqlstoretest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// A server that does not sync its disk gives the class Efficiency, and so does one whose commits do not
// wait for it.
func TestClassFollowsTheServer(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		s, _ := on.newStore(t) // on a server with fsync off
		if got := s.Caps().Class; got != store.Efficiency {
			t.Errorf("class %v with fsync off, want %v", got, store.Efficiency)
		}
		l := lease("x")
		l.Require = store.CrashSafe
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); !errors.Is(err, store.ErrUnsupported) {
			t.Errorf("acquire that requires a class the server cannot give: %v, want %v", err, store.ErrUnsupported)
		}
	})
	t.Run("commits that do not wait", func(t *testing.T) {
		t.Parallel()
		server, err := postgres.launch(postgres.durable...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		on := postgres.at(server)
		schema := on.newSchema(t)
		if got := on.open(t, schema, sqlstore.Options{}, "synchronous_commit=off").Caps().Class; got != store.Efficiency {
			t.Errorf("class %v with synchronous_commit off, want %v", got, store.Efficiency)
		}
		if got := on.open(t, schema, sqlstore.Options{}).Caps().Class; got != store.CrashSafe {
			t.Errorf("class %v by default, want %v", got, store.CrashSafe)
		}
	})
}

// Rows of locks that nobody has used for an hour are deleted, and no others. The next lease of such a
// lock has a larger token, and a write for the row that was there takes no effect.
func TestSweep(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		s, schema := on.newStore(t)
		db := on.handle(t)
		held, old := lease("held"), lease("old")
		mustAcquire(t, s, held)
		last := mustAcquire(t, s, old)
		mustRelease(t, s, old)
		mustGet(t, s, "free")
		stale := on.open(t, schema, sqlstore.Options{})
		mustGet(t, stale, "old") // it knows the row
		on.exec(t, db, schema, `UPDATE S.records SET written = written - 3700000000 WHERE k <> ? AND k <> ''`, recordstore.Key("free"))
		rows := func(name string) int64 {
			return on.number(t, db, schema, `SELECT COUNT(*) FROM S.records WHERE k = ?`, recordstore.Key(name))
		}
		n := 0
		eventually.True(t, "the row of the old lock is deleted", func() bool {
			n++
			mustGet(t, s, fmt.Sprint("new ", n))
			return rows("old") == 0
		})
		if rows("held") != 1 || rows("free") != 1 {
			t.Errorf("%d rows of a lock that is held, and %d of one that was used just now, want one each", rows("held"), rows("free"))
		}
		if err := s.Renew(t.Context(), []store.Lease{held})[0]; err != nil {
			t.Errorf("renew: %v", err)
		}
		next := lease("old")
		if g := mustAcquire(t, stale, next); g.Token <= last.Token {
			t.Errorf("token %v after a deletion, want a larger one than %v", g.Token, last.Token)
		}
		if st := inspect(t, s, "old"); st.Holder.Owner != next.Owner {
			t.Errorf("inspect: %+v, want the holder %s", st, next.Owner)
		}
	})
}

// A waiter in another process is woken by the release, within much less than it would take it to look.
func TestWaitersAreWoken(t *testing.T) {
	t.Parallel()
	s, schema := postgres.newStore(t)
	other := postgres.open(t, schema, sqlstore.Options{Timeout: patience})
	first := lease("x")
	mustAcquire(t, s, first)
	w := wait(t, other, lease("x"))
	listens := func() bool {
		return postgres.number(t, postgres.handle(t), schema, `SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN leasehold\_%'`) > 0
	}
	eventually.True(t, "the waiter listens", listens)
	mustRelease(t, s, first)
	w.granted(t)
	last := w.r.Lease
	began := time.Now()
	const rounds = 20
	for range rounds {
		w := wait(t, s, lease("x"))
		eventually.True(t, "the waiter has its place", func() bool { return len(inspect(t, other, "x").Queue) == 1 })
		mustRelease(t, other, last)
		w.granted(t)
		s, other, last = other, s, w.r.Lease
	}
	if took := time.Since(began); took > rounds*time.Second {
		t.Errorf("%d hand-offs took %v, want less than a second each: a waiter that is not woken looks after two", rounds, took)
	}
}
