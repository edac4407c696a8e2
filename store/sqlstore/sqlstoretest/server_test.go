package sqlstoretest

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// A server that does not sync its disk gives efficiency and no more.
func TestClassFollowsTheServer(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t) // on a server with fsync off
	if got := s.Caps().Class; got != store.Efficiency {
		t.Errorf("class %v with fsync off", got)
	}
	l := lease("x")
	l.Require = store.CrashSafe
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); !errors.Is(err, store.ErrUnsupported) {
		t.Errorf("acquire that requires a class the server cannot give: %v", err)
	}
	for _, c := range []struct {
		name string
		is   sqlstore.Server
		want store.Class
	}{
		{"one server", sqlstore.Server{Fsync: "on", FullPageWrites: "on", SynchronousCommit: "on"}, store.CrashSafe},
		{"commits that do not wait by default", sqlstore.Server{Fsync: "on", FullPageWrites: "on", SynchronousCommit: "off"}, store.CrashSafe},
		{"torn pages", sqlstore.Server{Fsync: "on", FullPageWrites: "off"}, store.Efficiency},
		{"an asynchronous standby", sqlstore.Server{Fsync: "on", FullPageWrites: "on", Standbys: 1}, store.Efficiency},
		{"a synchronous standby", sqlstore.Server{Fsync: "on", FullPageWrites: "on", Standbys: 1, SynchronousStandbyNames: "*", SynchronousCommit: "on"}, store.CrashSafe},
		{"a synchronous standby that nobody waits for", sqlstore.Server{Fsync: "on", FullPageWrites: "on", Standbys: 1, SynchronousStandbyNames: "*", SynchronousCommit: "local"}, store.Efficiency},
	} {
		if got := c.is.Class(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// stepClock puts the clock of a schema ahead of the server's, or back.
func stepClock(t *testing.T, schema string, by time.Duration) {
	t.Helper()
	// The function body is part of the schema, so this is the clock of all sessions.
	query := `CREATE OR REPLACE FUNCTION ` + schema + `.clock() RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + (` +
		strconv.FormatInt(by.Microseconds(), 10) + `) $$`
	if _, err := database(t, dsn(postgres)).ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}

// A server whose clock jumped ahead may have ended leases too early, so it grants
// nothing until the longest of them is over. It goes on renewing and releasing.
func TestClockAhead(t *testing.T) {
	t.Parallel()
	schema := newSchema(t, postgres)
	const longest = 2 * time.Second
	s := open(t, dsn(postgres), schema, sqlstore.Options{MaxTTL: longest})
	l, kept := lease("x"), lease("kept")
	l.TTL, kept.TTL = longest, longest
	mustAcquire(t, s, l)
	mustAcquire(t, s, kept)
	stepClock(t, schema, time.Hour)
	next := lease("x")
	next.TTL = longest
	_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: next})
	var q *store.QuorumError
	if !errors.As(err, &q) || q.Count(store.Quarantined) != 1 {
		t.Fatalf("acquire after the clock jumped ahead: %v, want a quarantine", err)
	}
	eventually(t, "a lease that was not granted is given back", func() bool { return !inspect(t, s, "x").Held })
	next.Owner = store.NewOwner()
	w := wait(t, s, next)
	w.granted(t)
	if !w.troubled() {
		t.Error("the waiter was not told of the quarantine")
	}
}

// Tokens do not go back if the clock does, and a token is never behind the clock, so
// that a restored backup does not repeat one.
func TestTokensAndTheClock(t *testing.T) {
	t.Parallel()
	s, schema := newStore(t)
	last := store.Grant{}
	for _, by := range []time.Duration{0, -time.Hour, -48 * time.Hour} {
		stepClock(t, schema, by)
		l := lease("x")
		s := open(t, dsn(postgres), schema, sqlstore.Options{})
		g := mustAcquire(t, s, l)
		if g.Token <= last.Token {
			t.Errorf("token %v after %v, with the clock at %v", g.Token, last.Token, by)
		}
		last = g
		mustRelease(t, s, l)
	}
	stepClock(t, schema, 0)
	before := time.Now().UnixMicro()
	// A backup from long ago.
	if _, err := database(t, dsn(postgres)).ExecContext(t.Context(), `DELETE FROM `+schema+`.locks`); err != nil {
		t.Fatal(err)
	}
	fresh := open(t, dsn(postgres), schema, sqlstore.Options{})
	if g := mustAcquire(t, fresh, lease("x")); int64(g.Token) < before {
		t.Errorf("token %v is behind the clock", g.Token)
	}
	_ = s
}

// Locks that nobody has used for a day are forgotten, and no others.
func TestSweep(t *testing.T) {
	t.Parallel()
	s, schema := newStore(t)
	db := database(t, dsn(postgres))
	for _, name := range []string{"held", "free", "old", "waited for"} {
		l := lease(name)
		mustAcquire(t, s, l)
		if name != "held" {
			mustRelease(t, s, l)
		}
	}
	for _, query := range []string{
		`UPDATE S SET ends = 1, token = 1 WHERE name IN ('old', 'waited for')`,
		`INSERT INTO P (name, owner, attempt, meta, spare, barge, durable, ends, signal) VALUES ('waited for', 'o', '', '', 0, false, false, 9000000000000000, 0)`,
	} {
		query = strings.NewReplacer("P (", schema+".places (", "S SET", schema+".locks SET").Replace(query)
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.ExecContext(t.Context(), `SELECT `+schema+`.sweep(100)`); err != nil {
		t.Fatal(err)
	}
	var left string
	if err := db.QueryRowContext(t.Context(), `SELECT string_agg(convert_from(name, 'UTF8'), ',' ORDER BY name) FROM `+schema+`.locks`).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if want := "free,held,waited for"; left != want {
		t.Errorf("left are %s, want %s", left, want)
	}
}

// A process that makes one acquire and ends, as the command does, does not search the
// whole table for unused locks each time.
func TestSweepIsRare(t *testing.T) {
	t.Parallel()
	const stores = 4 // each sweeps by chance, once in 4096 times
	swept := 0
	for range stores {
		s, schema := newStore(t)
		db := database(t, dsn(postgres))
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
}
