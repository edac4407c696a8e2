package sqlstoretest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// A URL has settings of the driver and of the store, and opens a store.
func TestURL(t *testing.T) {
	t.Parallel()
	u, err := sqlstore.ParseURL("postgres://u:p@a:1,b:2/d?sslmode=disable&schema=x&max_ttl=5s&connect_timeout=9")
	if err != nil {
		t.Fatal(err)
	}
	if u.Driver != "pgx" || u.Options.Schema != "x" || u.Options.MaxTTL != 5*time.Second ||
		strings.Contains(u.DSN, "schema") || strings.Contains(u.DSN, "max_ttl") || !strings.Contains(u.DSN, "connect_timeout=9") ||
		!strings.Contains(u.DSN, "sslmode=disable") || !strings.HasPrefix(u.DSN, "postgres://u:p@a:1,b:2/d?") {
		t.Errorf("the URL is read as %+v", u)
	}
	for _, wrong := range []string{
		"postgres://u:secret%@a/b", "postgres://u:secret@a/b?max_ttl=x", "postgres://u:secret@a/b?schema=a.b",
		"postgres://u:secret@a/b?max_ttl=-1s", "postgres://u:secret@a/b?sslmode=off", "postgres://u:secret@a/b\npostgres://u:secret@c/d",
	} {
		if _, err := sqlstore.ParseURL(wrong); !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %v without the password", wrong, err, store.ErrInvalid)
		}
	}
	schema := postgres.newSchema(t)
	s, err := store.Open(t.Context(), postgres.dsn("schema="+schema), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mustGet(t, s, "x")
}

// Errors say so if the host is a socket, or another server listens at the address. Those of the
// drivers do not.
func TestWrongAddresses(t *testing.T) {
	t.Parallel()
	for raw, says := range map[string]string{
		"postgres://u:secret@%2Frun%2Fpostgresql/d":                           "?host=/run/postgresql",
		"mysql://u:secret@%2frun%2fmysqld%2fmysqld.sock/d":                    "?socket=",
		"postgres://u:secret@" + mariadb.server.Addr + "/d?sslmode=disable":   "not PostgreSQL",
		"postgres://u:secret@" + mariadb.server.Addr + "/d?connect_timeout=1": "not PostgreSQL",
	} {
		if _, err := store.Open(t.Context(), raw, nil); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want words with %q", raw, err, says)
		}
	}
	// A PostgreSQL waits for the first message of its client, and a client of MySQL for that of the
	// server.
	_, err := newBy(t, sqlstore.MySQL, "mysql", "u:secret@tcp("+postgres.server.Addr+")/", &sqlstore.Options{Timeout: 300 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "no connection within") || strings.Contains(err.Error(), "secret") {
		t.Errorf("MySQL at the address of PostgreSQL: %v, want that there is no connection", err)
	}
}
