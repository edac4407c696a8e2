package sqlstoretest

import (
	"errors"
	"strings"
	"sync"
	"testing"

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

func TestMissingSchema(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		_, err := newBy(t, on.dialect, on.driver, on.dsn(), &sqlstore.Options{Schema: "nowhere"})
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
		if err := sqlstore.Hold(t.Context(), s, tx, aLease{Lease: l}); err != nil {
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
		_, err := newBy(t, on.dialect, on.driver, as(stranger).dsn(), &sqlstore.Options{Schema: schema})
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
