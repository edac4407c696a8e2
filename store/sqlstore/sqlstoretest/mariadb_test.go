package sqlstoretest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"

	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// mysqlClock is the server's clock in our scripts for MySQL.
const mysqlClock = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"

// mariadb is the MariaDB of most tests. Each test has a database of its own in it.
var mariadb = &bed{
	name:    "MariaDB",
	dialect: sqlstore.MySQL,
	driver:  "mysql",
	launch:  sqltest.LaunchMariaDB,
	quick:   []string{"max-connections=500", "debug-no-sync"},
	durable: []string{"innodb-flush-log-at-trx-commit=1"},
	address: func(s *sqltest.Server, database string) string {
		return fmt.Sprintf("%s:%s@tcp(%s)/%s?", s.User, s.Password, s.Addr, database)
	},
	direct: []string{"interpolateParams=true"},
	call: func(name, _ string, args int) string {
		return "CALL S." + name + "(" + strings.TrimSuffix(strings.Repeat("?,", args), ",") + ")"
	},
	program: func(name string) (string, error) {
		return exec.LookPath(map[string]string{"mysql": "mariadb", "mysqlbinlog": "mariadb-binlog"}[name])
	},
	// A session is in the schema while it executes a call.
	named:            func(string) string { return "" },
	kill:             killIn("information_schema.PROCESSLIST"),
	statementTimeout: "max_statement_time=1.5",
	lockTimeout:      "innodb_lock_wait_timeout=1",
	isolation:        "tx_isolation",
	readOnly:         "tx_read_only",
	withClock: func(script, more, expression string) string {
		return strings.ReplaceAll(script, mysqlClock, "(SELECT "+expression+")") + "\n" + more
	},
	run: func(t testing.TB, on *bed, script string) {
		t.Helper()
		// The server knows where a statement ends. Only clients need delimiters.
		script = regexp.MustCompile(`(?m)^DELIMITER .*$`).ReplaceAllString(script, "")
		on.exec(t, on.handle(t, "multiStatements=true"), "", strings.ReplaceAll(script, "$$", ";"))
	},
	mutants:     mariadbMutants,
	kindMutants: mariadbKindMutants,
	now:         mysqlClock,
	blocked:     `SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User lock' AND DB = 'S'`,
	free:        `SELECT IS_FREE_LOCK(CONCAT('leasehold ', ?))`,
	holding:     `SELECT COUNT(*) FROM information_schema.INNODB_TRX x JOIN information_schema.PROCESSLIST p ON p.ID = x.trx_mysql_thread_id WHERE x.trx_state = 'LOCK WAIT' AND p.DB = 'S'`,
	handOver: []string{
		`UPDATE S.owners SET owner = 'next' WHERE name = 'x'`,
		`UPDATE S.locks SET owner = 'next' WHERE name = 'x'`,
	},
	denied: []string{
		`SELECT * FROM S.locks`, `UPDATE S.locks SET owner = NULL`, `DELETE FROM S.places`, `SELECT * FROM S.meta`,
		`CALL S.kept('x', 1, NULL, '', NULL, 1, 0, 0, 0, 0, 0)`, `CALL S.locked('x', 'o', TRUE, @a, @b, @c, @d, @e, @f, @g, @h, @i, @j, @k, @l)`, `CREATE TABLE S.mine (n int)`,
	},
	createRoles: []string{`CREATE USER '$ROLE'@'127.0.0.1' IDENTIFIED BY 'p'`, `CREATE USER '$STRANGER'@'127.0.0.1' IDENTIFIED BY 'p'`},
	current:     func(schema string) string { return "db=" + schema },
	grantee:     func(role string) string { return role + "@127.0.0.1" },
	refusal:     "denied",
	place:       "INSERT INTO S.places (name, owner, attempt, meta, spare, barge, ends, `signal`) VALUES ('waited for', 'o', '', '', 0, FALSE, 9000000000000000, 0)",
	take:        "DO GET_LOCK('key %d', 60)",
	give:        "DO RELEASE_LOCK('key %d')",
	sweep:       `CALL S.sweep(100)`,
}

// killIn returns bed.kill for a server with that table of its sessions.
func killIn(sessions string) func(db *sql.DB, schema string) error {
	return func(db *sql.DB, schema string) error {
		var id int64
		err := db.QueryRowContext(context.Background(), `SELECT ID FROM `+sessions+` WHERE DB = ? ORDER BY RAND() LIMIT 1`, schema).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err == nil {
			_, err = db.ExecContext(context.Background(), fmt.Sprint("KILL ", id))
		}
		if err != nil && strings.Contains(err.Error(), "1094") { // the connection is gone
			return nil
		}
		return err
	}
}
