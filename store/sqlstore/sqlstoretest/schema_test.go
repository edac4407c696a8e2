package sqlstoretest

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// The schema can be installed any number of times, by several processes at once, while locks are
// held.
func TestInstallAgain(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		s, schema := on.newStore(t)
		l := lease("x")
		mustAcquire(t, s, l)
		var all sync.WaitGroup
		for range 4 {
			db := on.handle(t)
			all.Go(func() {
				if err := sqlstore.Install(t.Context(), db, on.dialect, schema); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if st := inspect(t, s, "x"); st.Holder.Owner != l.Owner {
			t.Errorf("inspect after another install: %+v, want the holder %s", st, l.Owner)
		}
		if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
			t.Errorf("renew after another install: %v", err)
		}
		mustRelease(t, s, l)
	})
}

// To install what is there already waits for no step that is under way. If it locked a table that the
// step has yet to write to, and then waited for another one that the step has written to, one of them
// would fail.
func TestInstallAgainWaitsForNoStep(t *testing.T) {
	t.Parallel()
	_, schema := postgres.newStore(t)
	step := begin(t, postgres.handle(t), sql.LevelDefault)
	for _, table := range []string{"locks", "places", "tombs", "breaks", "holds", "waits"} {
		if _, err := step.ExecContext(t.Context(), "LOCK TABLE "+schema+"."+table+" IN ROW EXCLUSIVE MODE"); err != nil {
			t.Fatal(err)
		}
	}
	db := postgres.handle(t, fmt.Sprint("lock_timeout=", patience.Milliseconds()))
	if err := sqlstore.Install(t.Context(), db, sqlstore.PostgreSQL, schema); err != nil {
		t.Errorf("install again while a step is under way: %v", err)
	}
}

// The printed script is the same as what Install runs: it can be run as a whole.
func TestScriptRunsAsAWhole(t *testing.T) {
	t.Parallel()
	schema := newName()
	script, err := sqlstore.Script(postgres.dialect, schema)
	if err != nil {
		t.Fatal(err)
	}
	db := postgres.handle(t, "default_query_exec_mode=simple_protocol")
	for range 2 {
		if _, err := db.ExecContext(t.Context(), script); err != nil {
			t.Fatal(err)
		}
	}
	mustGet(t, postgres.open(t, schema, sqlstore.Options{}), "x")
}

// A newer schema is not replaced. A program whose version it still supports goes on, and others are
// refused.
func TestNewerSchema(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		_, schema := on.newStore(t)
		db := on.handle(t)
		if _, err := db.ExecContext(t.Context(), `UPDATE `+schema+`.meta SET version = 1000`); err != nil {
			t.Fatal(err)
		}
		if err := sqlstore.Install(t.Context(), db, on.dialect, schema); err == nil || !strings.Contains(err.Error(), "newer") {
			t.Errorf("install over a newer version: %v, want an error that says so", err)
		}
		mustGet(t, on.open(t, schema, sqlstore.Options{}), "x")
		if _, err := db.ExecContext(t.Context(), `UPDATE `+schema+`.meta SET oldest = 1000`); err != nil {
			t.Fatal(err)
		}
		if _, err := sqlstore.Open(t.Context(), on.dialect, on.driver, on.dsn(), &sqlstore.Options{Schema: schema}); err == nil || !strings.Contains(err.Error(), "upgrade") {
			t.Errorf("open with a program that is too old: %v, want an error that says to upgrade", err)
		}
	})
}

// An older schema is refused until it is upgraded.
func TestOlderSchema(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		_, schema := on.newStore(t)
		db := on.handle(t)
		if _, err := db.ExecContext(t.Context(), `UPDATE `+schema+`.meta SET version = 0, oldest = 0`); err != nil {
			t.Fatal(err)
		}
		if _, err := sqlstore.Open(t.Context(), on.dialect, on.driver, on.dsn(), &sqlstore.Options{Schema: schema}); err == nil || !strings.Contains(err.Error(), "leasehold schema") {
			t.Errorf("open with a schema that is too old: %v, want an error that names leasehold schema", err)
		}
		if err := sqlstore.Install(t.Context(), db, on.dialect, schema); err != nil {
			t.Fatal(err)
		}
		mustGet(t, on.open(t, schema, sqlstore.Options{}), "x")
	})
}

func TestMissingSchema(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		_, err := sqlstore.Open(t.Context(), on.dialect, on.driver, on.dsn(), &sqlstore.Options{Schema: "nowhere"})
		if err == nil || !strings.Contains(err.Error(), "leasehold schema") {
			t.Errorf("open without a schema: %v, want an error that names leasehold schema", err)
		}
		for _, name := range []string{"a.b", "1a", `a"b`, "A", strings.Repeat("a", 64)} {
			if _, err := sqlstore.Script(on.dialect, name); !errors.Is(err, store.ErrInvalid) {
				t.Errorf("a schema called %q: %v, want %v", name, err, store.ErrInvalid)
			}
		}
	})
}

// A role with only the right to call the procedures can use locks, and can neither read nor write the
// tables. A role without that right can do nothing.
func TestLeastRights(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		_, schema := on.newStore(t)
		db := on.handle(t)
		role, stranger := "Locker "+schema, "stranger "+schema
		for _, query := range on.createRoles {
			on.exec(t, db, schema, strings.NewReplacer("$ROLE", role, "$STRANGER", stranger).Replace(query))
		}
		if err := sqlstore.Install(t.Context(), db, on.dialect, schema, on.grantee(role)); err != nil {
			t.Fatal(err)
		}
		as := func(name string) *bed {
			u := *on.server
			u.User, u.Password = name, "p"
			return on.at(&u)
		}
		s := as(role).open(t, schema, sqlstore.Options{})
		l := lease("x")
		mustAcquire(t, s, l)
		w := wait(t, s, lease("x"))
		eventually.True(t, "the waiter has its place", func() bool { return len(inspect(t, s, "x").Queue) == 1 })
		if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
			t.Error(err)
		}
		if list, err := s.List(t.Context(), ""); err != nil || len(list) != 1 {
			t.Errorf("list: %v, %v, want one lock", list, err)
		}
		locker := as(role).handle(t)
		tx := begin(t, locker, 0)
		if err := s.Hold(t.Context(), tx, aLease{Lease: l}); err != nil {
			t.Error(err)
		}
		tx.Rollback()
		mustRelease(t, s, l)
		w.granted(t)
		for _, query := range on.denied {
			if _, err := locker.ExecContext(t.Context(), on.in(schema, query)); err == nil || !strings.Contains(err.Error(), on.refusal) {
				t.Errorf("%s: %v, want a refusal", query, err)
			}
		}
		_, err := sqlstore.Open(t.Context(), on.dialect, on.driver, as(stranger).dsn(), &sqlstore.Options{Schema: schema})
		if err == nil || !strings.Contains(err.Error(), "--grant") {
			t.Errorf("open by a role without rights: %v, want an error that names --grant", err)
		}
	})
}

// Several processes install at once, also if transactions are serializable by default.
func TestInstallAtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		schema := on.newSchema(t)
		db := on.handle(t, on.level("SERIALIZABLE"))
		const installers = 8
		errs := make(chan error, installers)
		for range installers {
			go func() { errs <- sqlstore.Install(t.Context(), db, on.dialect, schema) }()
		}
		for range installers {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

// The owner of an existing schema can install into it without the right to create one.
func TestInstallIntoAnExistingSchema(t *testing.T) {
	t.Parallel()
	schema := newName()
	asSuperuser(t, `CREATE ROLE "owner of `+schema+`" LOGIN PASSWORD 'p'`)
	asSuperuser(t, `CREATE SCHEMA `+schema+` AUTHORIZATION "owner of `+schema+`"`)
	u := *postgres.server
	u.User, u.Password = "owner of "+schema, "p"
	owner := postgres.at(&u)
	for range 2 {
		if err := sqlstore.Install(t.Context(), owner.handle(t), sqlstore.PostgreSQL, schema); err != nil {
			t.Fatal(err)
		}
	}
	mustGet(t, owner.open(t, schema, sqlstore.Options{}), "x")
}

// The installation calls no function that others have put into the search path, which would run with
// the rights of the role that installs. It restores the path, since a migration tool may go on in
// the same transaction.
func TestInstallIgnoresTheSearchPath(t *testing.T) {
	t.Parallel()
	schema := newName()
	theirs := "theirs_" + schema
	for _, query := range []string{
		`CREATE SCHEMA $`,
		`CREATE TABLE $.ran (what text)`,
		`CREATE FUNCTION $.hashtextextended(text, integer) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN INSERT INTO $.ran VALUES ('hashtextextended'); RETURN 1; END $$`,
		`CREATE FUNCTION $.format(text, regprocedure, regrole) RETURNS text LANGUAGE plpgsql AS $$ BEGIN INSERT INTO $.ran VALUES ('format'); RETURN 'SELECT 1'; END $$`,
		`CREATE FUNCTION $.quote_ident(name) RETURNS text LANGUAGE plpgsql AS $$ BEGIN INSERT INTO $.ran VALUES ('quote_ident'); RETURN ''; END $$`,
		`CREATE ROLE "app of $"`,
	} {
		asSuperuser(t, strings.NewReplacer("$$", "$$", "$", theirs).Replace(query))
	}
	script, err := sqlstore.Script(sqlstore.PostgreSQL, schema)
	if err != nil {
		t.Fatal(err)
	}
	db := postgres.handle(t, "search_path="+theirs, "default_query_exec_mode=simple_protocol")
	ran := func() int64 { return postgres.number(t, db, theirs, `SELECT count(*) FROM S.ran`) }
	if _, err := db.ExecContext(t.Context(), `SELECT hashtextextended('leasehold schema', 0)`); err != nil || ran() != 1 {
		t.Fatalf("a call in this search path does not reach their function: %v", err)
	}
	for range 2 { // in the second round the role has rights to keep
		tx := begin(t, db, 0)
		if _, err := tx.ExecContext(t.Context(), script+"\n"+`GRANT EXECUTE ON FUNCTION `+schema+`.ask TO "app of `+theirs+`"`); err != nil {
			t.Fatal(err)
		}
		var path string
		if err := tx.QueryRowContext(t.Context(), `SHOW search_path`).Scan(&path); err != nil || path != theirs {
			t.Errorf("the search path after the script is %q, %v, want %q", path, err, theirs)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if n := ran() - 1; n != 0 {
		t.Errorf("%d calls of functions of others, want none", n)
	}
}

// The procedures call nothing that others have put into the search path of their caller: no
// function, operator or type.
func TestCallsIgnoreTheSearchPath(t *testing.T) {
	t.Parallel()
	schema := postgres.newSchema(t)
	theirs := "before_" + schema
	asSuperuser(t, `CREATE SCHEMA `+theirs)
	for _, name := range []string{"text", "bytea"} { // others are key words
		asSuperuser(t, `CREATE DOMAIN `+theirs+`.`+name+` AS pg_catalog.`+name+` CHECK (VALUE IS NULL)`)
	}
	function := func(name, args, returns string) {
		asSuperuser(t, `CREATE FUNCTION `+theirs+`.`+name+`(`+args+`) RETURNS `+returns+` LANGUAGE plpgsql AS $$ BEGIN RAISE 'theirs'; END $$`)
	}
	function("clock_timestamp", "", "timestamptz")
	function("current_setting", "text", "pg_catalog.text")
	function("set_config", "text, text, boolean", "pg_catalog.text")
	function("pg_backend_pid", "", "integer")
	for i, operands := range []string{"bytea bytea", "bigint bigint", "bigint integer", "text text", "tid tid", "integer bigint", "numeric integer", "numeric numeric"} {
		left, right, _ := strings.Cut(operands, " ")
		for j, operator := range []string{"=", "<>", "<", "<=", ">", ">=", "+", "-", "*"} {
			returns := "boolean"
			if operator > "*" && operator < "." || operator == "*" {
				returns = left
			}
			name := fmt.Sprintf("f%d_%d", i, j)
			function(name, left+", "+right, returns)
			asSuperuser(t, fmt.Sprintf("CREATE OPERATOR %s.%s (FUNCTION = %s.%s, LEFTARG = %s, RIGHTARG = %s)", theirs, operator, theirs, name, left, right))
		}
	}
	path := "search_path=" + theirs + ",pg_catalog"
	if _, err := postgres.handle(t, path).ExecContext(t.Context(), `SELECT 1::bigint = 1::bigint`); err == nil || !strings.Contains(err.Error(), "theirs") {
		t.Fatalf("an operator in this search path: %v, want theirs", err)
	}
	s := postgres.open(t, schema, sqlstore.Options{}, path)
	for _, rejoin := range []bool{false, true} {
		l := lease("x")
		mustAcquire(t, s, l)
		w := wait(t, s, lease("x"))
		eventually.True(t, "the waiter has its place", func() bool { return len(inspect(t, s, "x").Queue) == 1 })
		if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
			t.Error(err)
		}
		next := lease("x")
		if !rejoin {
			mustRelease(t, s, l)
		} else if queued, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: l}, store.WaitRequest{Lease: next}); err != nil || !queued {
			t.Errorf("release and rejoin: %v, %v, want a place", queued, err)
		}
		w.granted(t)
		last := wait(t, s, next)
		mustRelease(t, s, w.r.Lease)
		last.granted(t)
		mustRelease(t, s, next)
		mustGet(t, s, "another")
	}
	postgres.exec(t, postgres.handle(t), schema, `UPDATE S.locks SET waited = 0`)
	p := &procedures{on: postgres, db: postgres.handle(t, path, postgres.direct[0]), schema: schema}
	for i, steps := range [][]batchStep{
		{{lock: "x", owner: "o", ttl: time.Minute}, {lock: "another", owner: "o", ttl: time.Minute}},
		{{lock: "x", owner: "o", release: true}, {lock: "another", owner: "next", ttl: time.Minute}},
	} {
		got, err := p.batch(steps)
		if err != nil {
			t.Fatal(err)
		}
		for n, want := range [][]string{{"granted", "granted"}, {"released", "busy"}}[i] {
			if got[n].verdict != want {
				t.Errorf("step %d of batch %d: %+v, want verdict %q", n+1, i+1, got[n], want)
			}
		}
	}
}

// A session finds the rows of a lock by an index, also if there are so few rows that reading
// all of them would be cheaper: it would do the same when there are many.
func TestFewRowsAreFoundByTheIndex(t *testing.T) {
	t.Parallel()
	s, schema := postgres.newStore(t)
	for _, name := range []string{"x", "y", "z"} {
		mustGet(t, s, name)
	}
	db := postgres.handle(t)
	for range 2 {
		postgres.exec(t, db, schema, `VACUUM (ANALYZE) S.locks`)
		postgres.exec(t, db, schema, `VACUUM (ANALYZE) S.places`)
		for _, query := range []string{
			`SELECT ctid FROM S.locks WHERE name || '' = 'x' ORDER BY era DESC LIMIT 1`,
			`SELECT seq FROM S.places WHERE name = 'x' AND owner = 'y'`,
			`SELECT seq FROM S.places WHERE name = 'x' ORDER BY seq LIMIT 1`,
			`SELECT seq FROM S.places WHERE name = 'x' AND seq < 9 AND ends > 9 AND signal <> 0 ORDER BY seq DESC LIMIT 1`,
		} {
			var plan string
			if err := db.QueryRowContext(t.Context(), postgres.in(schema, `EXPLAIN (FORMAT JSON) `+query)).Scan(&plan); err != nil {
				t.Fatal(err)
			}
			found := strings.Contains(plan, "Index Scan") || strings.Contains(plan, "Index Only Scan")
			if !found || strings.Contains(plan, "Bitmap") && strings.Contains(query, "locks") {
				t.Errorf("%s: %s, want an index scan", query, plan)
			}
		}
	}
}

// Migration tools that send a script as a whole can install the schema any number of times, and get
// an error if it is newer.
func TestScriptForMigrationTools(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		schema := newName()
		script, err := sqlstore.WholeScript(on.dialect, schema)
		if err != nil {
			t.Fatal(err)
		}
		settings := []string{"multiStatements=true"}
		if on == postgres {
			settings = []string{"default_query_exec_mode=simple_protocol"}
		}
		db := on.handle(t, settings...)
		for range 2 {
			if _, err := db.ExecContext(t.Context(), script); err != nil {
				t.Fatal(err)
			}
		}
		mustGet(t, on.open(t, schema, sqlstore.Options{}), "x")
		on.exec(t, db, schema, `UPDATE S.meta SET version = 1000`)
		if _, err := db.ExecContext(t.Context(), script); err == nil || !strings.Contains(err.Error(), "newer") {
			t.Errorf("the script of an older version: %v, want an error that names the newer one", err)
		}
	})
}
