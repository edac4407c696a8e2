package sqlstoretest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"

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
	named:    func(schema string) string { return "application_name=" + schema },
	kill: func(db *sql.DB, schema string) error {
		_, err := db.ExecContext(context.Background(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1 ORDER BY random() LIMIT 1`, schema)
		return err
	},
	limits:      []string{"statement_timeout=500", "idle_in_transaction_session_timeout=500", "idle_session_timeout=1000"},
	lockTimeout: "lock_timeout=20",
	isolation:   "default_transaction_isolation",
	readOnly:    "default_transaction_read_only",
	holding:     `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || 'S' || '.records%FOR KEY SHARE%'`,
	denied:      []string{`DROP TABLE S.records`, `TRUNCATE S.records`, `CREATE TABLE S.mine (n int)`},
	createRoles: []string{`CREATE ROLE "$ROLE" LOGIN PASSWORD 'p'`, `CREATE ROLE "$STRANGER" LOGIN PASSWORD 'p'`},
	current:     func(schema string) string { return "search_path=" + schema },
	grantee:     func(role string) string { return role },
	refusal:     "42501",
	take:        "SELECT pg_advisory_lock(%d)",
	give:        "SELECT pg_advisory_unlock(%d)",
}
