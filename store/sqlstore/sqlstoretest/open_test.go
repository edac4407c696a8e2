package sqlstoretest

import (
	"database/sql"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// patience bounds what takes milliseconds unless something is broken.
const patience = 60 * time.Second

// dsn is the URL of a server for pgx, with settings such as "sslmode=disable".
func dsn(s *sqltest.Server, settings ...string) string {
	u := fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", s.User, s.Password, s.Addr, s.Database)
	for _, one := range settings {
		u += "&" + one
	}
	return u
}

var schemas atomic.Int64

// newSchema installs the procedures in a schema of the test's own.
func newSchema(t testing.TB, s *sqltest.Server) string {
	t.Helper()
	schema := fmt.Sprintf("locks_%d", schemas.Add(1))
	if err := sqlstore.Install(t.Context(), database(t, dsn(s)), sqlstore.PostgreSQL, schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// database returns a handle that is closed at the end of the test.
func database(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// open opens a store that is closed at the end of the test.
func open(t testing.TB, dsn, schema string, o sqlstore.Options) *sqlstore.Store {
	t.Helper()
	o.Schema = schema
	s, err := sqlstore.Open(t.Context(), sqlstore.PostgreSQL, "pgx", dsn, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// newStore opens a store in a new schema of the common server.
func newStore(t testing.TB) (*sqlstore.Store, string) {
	t.Helper()
	schema := newSchema(t, postgres)
	return open(t, dsn(postgres), schema, sqlstore.Options{}), schema
}

func lease(name string) store.Lease {
	return store.Lease{Name: name, Owner: store.NewOwner(), TTL: 30 * time.Second}
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// setting is a setting of a connection in a URL.
func setting(name, value string) string { return name + "=" + url.PathEscape(value) }
