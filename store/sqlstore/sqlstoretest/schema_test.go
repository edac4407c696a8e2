package sqlstoretest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// The schema can be installed any number of times, by several at once, while locks
// are held.
func TestInstallAgain(t *testing.T) {
	t.Parallel()
	s, schema := newStore(t)
	l := lease("x")
	mustAcquire(t, s, l)
	var all sync.WaitGroup
	for range 4 {
		db := database(t, dsn(postgres))
		all.Go(func() {
			if err := sqlstore.Install(t.Context(), db, sqlstore.PostgreSQL, schema); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if st := inspect(t, s, "x"); st.Holder.Owner != l.Owner {
		t.Errorf("the lock after another install: %+v", st)
	}
	if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
		t.Errorf("renew after another install: %v", err)
	}
	mustRelease(t, s, l)
}

// The printed script is the same as what Install runs: it can be run as a whole.
func TestScriptRunsAsAWhole(t *testing.T) {
	t.Parallel()
	schema := fmt.Sprintf("locks_%d", schemas.Add(1))
	script, err := sqlstore.Script(sqlstore.PostgreSQL, schema)
	if err != nil {
		t.Fatal(err)
	}
	db := database(t, dsn(postgres, "default_query_exec_mode=simple_protocol"))
	for range 2 {
		if _, err := db.ExecContext(t.Context(), script); err != nil {
			t.Fatal(err)
		}
	}
	mustGet(t, open(t, dsn(postgres), schema, sqlstore.Options{}), "x")
}

// A newer schema is not replaced. A program that it has no room for is refused, and
// one that it has goes on.
func TestNewerSchema(t *testing.T) {
	t.Parallel()
	_, schema := newStore(t)
	db := database(t, dsn(postgres))
	if _, err := db.ExecContext(t.Context(), `UPDATE `+schema+`.meta SET version = 1000`); err != nil {
		t.Fatal(err)
	}
	if err := sqlstore.Install(t.Context(), db, sqlstore.PostgreSQL, schema); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("install over a newer version: %v", err)
	}
	mustGet(t, open(t, dsn(postgres), schema, sqlstore.Options{}), "x")
	if _, err := db.ExecContext(t.Context(), `UPDATE `+schema+`.meta SET oldest = 1000`); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlstore.Open(t.Context(), sqlstore.PostgreSQL, "pgx", dsn(postgres), &sqlstore.Options{Schema: schema}); err == nil || !strings.Contains(err.Error(), "upgrade") {
		t.Errorf("open with a program that is too old: %v", err)
	}
}

// An older schema is refused until it is upgraded.
func TestOlderSchema(t *testing.T) {
	t.Parallel()
	_, schema := newStore(t)
	db := database(t, dsn(postgres))
	if _, err := db.ExecContext(t.Context(), `UPDATE `+schema+`.meta SET version = 0, oldest = 0`); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlstore.Open(t.Context(), sqlstore.PostgreSQL, "pgx", dsn(postgres), &sqlstore.Options{Schema: schema}); err == nil || !strings.Contains(err.Error(), "leasehold schema") {
		t.Errorf("open with a schema that is too old: %v", err)
	}
	if err := sqlstore.Install(t.Context(), db, sqlstore.PostgreSQL, schema); err != nil {
		t.Fatal(err)
	}
	mustGet(t, open(t, dsn(postgres), schema, sqlstore.Options{}), "x")
}

func TestMissingSchema(t *testing.T) {
	t.Parallel()
	_, err := sqlstore.Open(t.Context(), sqlstore.PostgreSQL, "pgx", dsn(postgres), &sqlstore.Options{Schema: "nowhere"})
	if err == nil || !strings.Contains(err.Error(), "leasehold schema") {
		t.Errorf("open without a schema: %v", err)
	}
	for _, name := range []string{"a.b", "1a", `a"b`, "A", strings.Repeat("a", 64)} {
		if _, err := sqlstore.Script(sqlstore.PostgreSQL, name); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("a schema called %q: %v", name, err)
		}
	}
}

// A role that may only call the procedures can use locks, and can neither read nor
// write the tables. A role without rights can do nothing.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	_, schema := newStore(t)
	db := database(t, dsn(postgres))
	role := "Locker " + schema
	for _, query := range []string{
		fmt.Sprintf(`CREATE ROLE %q LOGIN PASSWORD 'p'`, role),
		fmt.Sprintf(`CREATE ROLE "stranger %s" LOGIN PASSWORD 'p'`, schema),
	} {
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	if err := sqlstore.Install(t.Context(), db, sqlstore.PostgreSQL, schema, role); err != nil {
		t.Fatal(err)
	}
	as := func(name string) string {
		u := *postgres
		u.User, u.Password = strings.ReplaceAll(name, " ", "%20"), "p"
		return dsn(&u)
	}
	s := open(t, as(role), schema, sqlstore.Options{})
	l := lease("x")
	mustAcquire(t, s, l)
	w := wait(t, s, lease("x"))
	eventually(t, "the waiter has its place", func() bool { return len(inspect(t, s, "x").Queue) == 1 })
	if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
		t.Error(err)
	}
	if _, err := s.ReserveTokens(t.Context(), store.ReserveRequest{Lease: l, Count: 3}); err != nil {
		t.Error(err)
	}
	if list, err := s.List(t.Context(), ""); err != nil || len(list) != 1 {
		t.Errorf("list: %v, %v", list, err)
	}
	locker := database(t, as(role))
	tx := begin(t, locker, 0)
	if err := s.Hold(t.Context(), tx, aLease{Lease: l}); err != nil {
		t.Error(err)
	}
	tx.Rollback()
	mustRelease(t, s, l)
	w.granted(t)
	for _, query := range []string{
		`SELECT * FROM S.locks`, `UPDATE S.locks SET owner = NULL`, `DELETE FROM S.places`, `SELECT * FROM S.meta`,
		`SELECT S.settled(NULL, 1, 'x')`, `SELECT S.kept(NULL)`, `CREATE TABLE S.mine (n int)`,
	} {
		if _, err := locker.ExecContext(t.Context(), strings.ReplaceAll(query, "S.", schema+".")); err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("%s: %v, want a refusal", query, err)
		}
	}
	_, err := sqlstore.Open(t.Context(), sqlstore.PostgreSQL, "pgx", as("stranger "+schema), &sqlstore.Options{Schema: schema})
	if err == nil || !strings.Contains(err.Error(), "--grant") {
		t.Errorf("open by a role without rights: %v", err)
	}
}

// Several processes install at once, also if transactions are serializable by default.
func TestInstallAtOnce(t *testing.T) {
	t.Parallel()
	schema := newSchema(t, postgres)
	db := database(t, dsn(postgres, setting("default_transaction_isolation", "serializable")))
	const installers = 8
	errs := make(chan error, installers)
	for range installers {
		go func() { errs <- sqlstore.Install(t.Context(), db, sqlstore.PostgreSQL, schema) }()
	}
	for range installers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
