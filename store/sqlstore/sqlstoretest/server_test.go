package sqlstoretest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// A server that does not sync its disk gives the class Efficiency.
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
	for _, c := range []struct {
		name string
		has  sqlstore.Settings
		want store.Class
	}{
		{"one server", sqlstore.PostgreSQLSettings{Fsync: "on", FullPageWrites: "on", SynchronousCommit: "on"}, store.CrashSafe},
		{"commits that do not wait by default", sqlstore.PostgreSQLSettings{Fsync: "on", FullPageWrites: "on", SynchronousCommit: "off"}, store.CrashSafe},
		{"torn pages", sqlstore.PostgreSQLSettings{Fsync: "on", FullPageWrites: "off"}, store.Efficiency},
		{"an asynchronous standby", sqlstore.PostgreSQLSettings{Fsync: "on", FullPageWrites: "on", Standbys: 1}, store.Efficiency},
		{"a synchronous standby", sqlstore.PostgreSQLSettings{Fsync: "on", FullPageWrites: "on", Standbys: 1, SynchronousStandbyNames: "*", SynchronousCommit: "on"}, store.CrashSafe},
		{"a synchronous standby that commits do not wait for", sqlstore.PostgreSQLSettings{Fsync: "on", FullPageWrites: "on", Standbys: 1, SynchronousStandbyNames: "*", SynchronousCommit: "local"}, store.Efficiency},
		{"one MySQL", my("1", "ON", "OFF", "0", "", 0), store.CrashSafe},
		{"a MySQL that syncs once a second", my("2", "ON", "OFF", "0", "", 0), store.Efficiency},
		{"a MySQL with torn pages", my("1", "OFF", "OFF", "0", "", 0), store.Efficiency},
		{"a MySQL that only detects torn pages", my("1", "DETECT_ONLY", "OFF", "0", "", 0), store.Efficiency},
		{"a MySQL with a binary log on disk", my("1", "ON", "ON", "1", "", 0), store.CrashSafe},
		{"a MySQL whose binary log is not synced", my("1", "ON", "ON", "0", "", 0), store.Efficiency},
		{"a MySQL with a replica", my("1", "ON", "ON", "1", "", 1), store.Efficiency},
		{"a node of Galera", my("1", "ON", "OFF", "0", "Galera", 0), store.Efficiency},
	} {
		is := sqlstore.Server{Settings: c.has}
		if got := is.Class(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func my(flush, doublewrite, log, sync, cluster string, replicas int) sqlstore.MySQLSettings {
	return sqlstore.MySQLSettings{InnodbFlushLogAtTrxCommit: flush, InnodbDoublewrite: doublewrite, LogBin: log, SyncBinlog: sync, Cluster: cluster, Replicas: replicas}
}

// stepClock sets the clock of a schema ahead of the server's, or back.
func stepClock(t *testing.T, on *bed, schema string, by time.Duration) {
	t.Helper()
	script, err := sqlstore.Script(on.dialect, schema)
	if err != nil {
		t.Fatal(err)
	}
	on.run(t, on, on.in(schema, on.withClock(script, "", fmt.Sprintf("%s + (%d)", on.now, by.Microseconds()))))
}

// A server whose clock jumped ahead may have ended leases too early, so it grants
// nothing until the longest of them is over. It goes on renewing and releasing.
func TestClockAhead(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		schema := on.newSchema(t)
		const longest = 2 * time.Second
		s := on.open(t, schema, sqlstore.Options{MaxTTL: longest})
		l, kept := lease("x"), lease("kept")
		l.TTL, kept.TTL = longest, longest
		mustAcquire(t, s, l)
		mustAcquire(t, s, kept)
		stepClock(t, on, schema, time.Hour)
		next := lease("x")
		next.TTL = longest
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: next})
		var q *store.QuorumError
		if !errors.As(err, &q) || q.Count(store.Quarantined) != 1 {
			t.Fatalf("acquire after the clock jumped ahead: %v, want a quarantine", err)
		}
		eventually.True(t, "a lease that was not granted is released", func() bool { return !inspect(t, s, "x").Held })
		next.Owner = store.NewOwner()
		w := wait(t, s, next)
		w.granted(t)
		if !w.troubled() {
			t.Error("the waiter does not report the quarantine")
		}
	})
}

// Tokens do not go back if the clock does, and a token is never behind the clock, so
// that a restored backup does not repeat one.
func TestTokensAndTheClock(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		s, schema := on.newStore(t)
		last := store.Grant{}
		for _, by := range []time.Duration{0, -time.Hour, -48 * time.Hour} {
			stepClock(t, on, schema, by)
			l := lease("x")
			s := on.open(t, schema, sqlstore.Options{})
			g := mustAcquire(t, s, l)
			if g.Token <= last.Token {
				t.Errorf("token %v after %v, want a larger one, with the clock at %v", g.Token, last.Token, by)
			}
			last = g
			mustRelease(t, s, l)
		}
		stepClock(t, on, schema, 0)
		before := time.Now().UnixMicro()
		// An old backup is restored.
		if _, err := on.handle(t).ExecContext(t.Context(), `DELETE FROM `+schema+`.locks`); err != nil {
			t.Fatal(err)
		}
		fresh := on.open(t, schema, sqlstore.Options{})
		if g := mustAcquire(t, fresh, lease("x")); int64(g.Token) < before {
			t.Errorf("token %v is behind the clock, want at least %v", g.Token, before)
		}
		_ = s
	})
}

// Rows of locks that were not used for a day are removed, and no others.
func TestSweep(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		s, schema := on.newStore(t)
		db := on.handle(t)
		for _, name := range []string{"held", "free", "old", "waited for"} {
			l := lease(name)
			mustAcquire(t, s, l)
			if name != "held" {
				mustRelease(t, s, l)
			}
		}
		on.exec(t, db, schema, `UPDATE S.locks SET ends = 1, token = 1 WHERE name IN ('old', 'waited for')`)
		on.exec(t, db, schema, on.place)
		on.exec(t, db, schema, on.sweep)
		rows, err := db.QueryContext(t.Context(), on.in(schema, `SELECT name FROM S.locks ORDER BY name`))
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var left []string
		for rows.Next() {
			var name []byte
			if err := rows.Scan(&name); err != nil {
				t.Fatal(err)
			}
			left = append(left, string(name))
		}
		if want := []string{"free", "held", "waited for"}; rows.Err() != nil || !slices.Equal(left, want) {
			t.Errorf("the locks left are %q, want %q (%v)", left, want, rows.Err())
		}
		on.exec(t, db, schema, `UPDATE S.places SET ends = 1`) // all waiters are dead
		on.exec(t, db, schema, on.sweep)
		if n := on.number(t, db, schema, `SELECT (SELECT count(*) FROM S.locks WHERE name = 'waited for') + (SELECT count(*) FROM S.places)`); n != 0 {
			t.Errorf("%d rows are left of a lock whose holder and waiters died long ago, want none", n)
		}
	})
}

// A process that makes one acquire and ends, as the command does, does not search the
// whole table for unused locks each time.
func TestSweepIsRare(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		const stores = 4 // a store sweeps by chance, in one of 4096 acquires
		swept := 0
		for range stores {
			s, schema := on.newStore(t)
			db := on.handle(t)
			if _, err := db.ExecContext(t.Context(), `INSERT INTO `+schema+`.locks (name, token, ends) VALUES ('old', 1, 1)`); err != nil {
				t.Fatal(err)
			}
			mustAcquire(t, s, lease("x"))
			if err := s.Close(); err != nil { // after all clean-up
				t.Fatal(err)
			}
			var left int
			if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM `+schema+`.locks WHERE name = 'old'`).Scan(&left); err != nil {
				t.Fatal(err)
			}
			swept += 1 - left
		}
		if swept == stores {
			t.Errorf("each of %d stores swept at its first acquire", stores)
		}
	})
}
