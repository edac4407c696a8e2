package sqlstoretest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// postgres is the PostgreSQL of most tests. Each test has a schema of its own in it.
var postgres = &bed{
	name:    "PostgreSQL",
	dialect: sqlstore.PostgreSQL,
	driver:  "pgx",
	launch:  sqltest.LaunchPostgreSQL,
	quick:   []string{"max_connections=500"},
	durable: []string{"fsync=on", "full_page_writes=on"},
	address: func(s *sqltest.Server, _ string) string {
		return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable&", url.PathEscape(s.User), s.Password, s.Addr, s.Database)
	},
	readable: []string{"default_query_exec_mode=exec"},
	direct:   []string{"default_query_exec_mode=simple_protocol"},
	call: func(name, columns string, args int) string {
		return "SELECT " + columns + " FROM S." + name + "(" + strings.TrimSuffix(strings.Repeat("?,", args), ",") + ")"
	},
	named: func(schema string) string { return "application_name=" + schema },
	kill: func(db *sql.DB, schema string) error {
		_, err := db.ExecContext(context.Background(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 ORDER BY random() LIMIT 1`, schema)
		return err
	},
	statementTimeout: "statement_timeout=1500",
	lockTimeout:      "lock_timeout=20",
	isolation:        "default_transaction_isolation",
	readOnly:         "default_transaction_read_only",
	withClock: func(script, more, expression string) string {
		// The function is part of the schema, so this is the clock of all sessions.
		return script + "\n" + more + "\nCREATE OR REPLACE FUNCTION S.clock() RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT " + expression + " $$"
	},
	run: func(t testing.TB, on *bed, script string) {
		t.Helper()
		on.exec(t, on.handle(t, "default_query_exec_mode=simple_protocol"), "", script)
	},
	mutants:     mutants,
	kindMutants: postgresKindMutants,
	now:         `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`,
	blocked:     `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND query LIKE '%' || 'S' || '.await(%'`,
	free:        `WITH l AS MATERIALIZED (SELECT pg_try_advisory_xact_lock(?) AS free) SELECT free::int FROM l`,
	holding:     `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || 'S' || '.hold(%'`,
	handOver: []string{
		`SELECT S.release('x', '$OWNER', '', false, 0, false, 0)`,
		`SELECT S.ask('x', 'next', '', '', 30000000, 0, false, false, true, 0)`,
	},
	denied: []string{
		`SELECT * FROM S.locks`, `UPDATE S.locks SET owner = NULL`, `DELETE FROM S.places`, `SELECT * FROM S.meta`,
		`SELECT S.settled(NULL, 1, 'x')`, `SELECT S.kept(NULL)`, `CREATE TABLE S.mine (n int)`,
	},
	createRoles: []string{`CREATE ROLE "$ROLE" LOGIN PASSWORD 'p'`, `CREATE ROLE "$STRANGER" LOGIN PASSWORD 'p'`},
	current:     func(schema string) string { return "search_path=" + schema },
	grantee:     func(role string) string { return role },
	refusal:     "42501",
	place:       `INSERT INTO S.places (name, owner, attempt, meta, spare, barge, durable, ends, signal) VALUES ('waited for', 'o', '', '', 0, false, false, 9000000000000000, 0)`,
	take:        "SELECT pg_advisory_lock(%d)",
	give:        "SELECT pg_advisory_unlock(%d)",
	sweep:       `SELECT S.sweep(100)`,
}
