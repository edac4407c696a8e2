package sqlstoretest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// asSuperuser runs a statement in the PostgreSQL of most tests.
func asSuperuser(t testing.TB, query string, args ...any) {
	t.Helper()
	postgres.exec(t, postgres.handle(t), "", query, args...)
}

// Rights are granted to roles whatever their names are.
func TestGrantToAnyName(t *testing.T) {
	t.Parallel()
	schema := postgres.newSchema(t)
	for i, role := range []string{`a"b`, `semi;colon`, "line;\nbreak", `$$ body $$`, `odd $$ body`, `dash -- dash`, `comma, name`, `Ünïcode`} {
		role = fmt.Sprintf("%s %s %d", role, schema, i)
		quoted := `"` + strings.ReplaceAll(role, `"`, `""`) + `"`
		asSuperuser(t, "CREATE ROLE "+quoted)
		if err := sqlstore.Install(t.Context(), postgres.handle(t), sqlstore.PostgreSQL, schema, role); err != nil {
			t.Errorf("grant to %q: %v", role, err)
			continue
		}
		var may bool
		err := postgres.handle(t).QueryRowContext(t.Context(), `SELECT has_table_privilege($1, $2 || '.records', 'update')`, role, schema).Scan(&may)
		if err != nil || !may {
			t.Errorf("%q has no right to use the table: %v", role, err)
		}
	}
}

// Open refuses a role whose transactions are read-only, and names the setting.
func TestReadOnlyRole(t *testing.T) {
	t.Parallel()
	schema := postgres.newSchema(t)
	_, err := newBy(t, sqlstore.PostgreSQL, "pgx", postgres.dsn("default_transaction_read_only=on"), &sqlstore.Options{Schema: schema})
	if err == nil || !strings.Contains(err.Error(), "default_transaction_read_only") || strings.Contains(err.Error(), "standby") {
		t.Errorf("open by a read-only role: %v, want an error that names the setting", err)
	}
}

// A process without contention needs one connection.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	schema := postgres.newSchema(t)
	app := "alone_" + schema
	s, err := store.Open(t.Context(), postgres.dsn("schema="+schema, setting("application_name", app)), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	l := lease("x")
	if _, err := s.Wait(t.Context(), store.WaitRequest{Lease: l}, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
		t.Error(err)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
		t.Error(err)
	}
	var all, listening int
	const count = `SELECT count(*), count(*) FILTER (WHERE query LIKE 'LISTEN %') FROM pg_stat_activity WHERE application_name = $1`
	// A sweep of expired rows may overlap with a call, and then has a second connection.
	if err := postgres.handle(t).QueryRowContext(t.Context(), count, app).Scan(&all, &listening); err != nil || all > 2 || listening > 0 {
		t.Errorf("%d connections, %d of which listen, %v; want 1, and none that listens", all, listening, err)
	}
}
