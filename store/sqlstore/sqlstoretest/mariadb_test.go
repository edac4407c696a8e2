package sqlstoretest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	_ "github.com/go-sql-driver/mysql"

	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

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
	program: func(name string) (string, error) {
		return exec.LookPath(map[string]string{"mysql": "mariadb", "mysqlbinlog": "mariadb-binlog"}[name])
	},
	named:       func(schema string) string { return "db=" + schema },
	kill:        killIn("information_schema.PROCESSLIST"),
	limits:      []string{"max_statement_time=0.5", "wait_timeout=1"},
	lockTimeout: "innodb_lock_wait_timeout=1",
	isolation:   "tx_isolation",
	readOnly:    "tx_read_only",
	holding:     `SELECT COUNT(*) FROM information_schema.INNODB_TRX x JOIN information_schema.PROCESSLIST p ON p.ID = x.trx_mysql_thread_id WHERE x.trx_state = 'LOCK WAIT' AND p.INFO LIKE CONCAT('%', 'S', '.records%SHARE%')`,
	denied:      []string{`DROP TABLE S.records`, `TRUNCATE S.records`, `CREATE TABLE S.mine (n int)`},
	createRoles: []string{`CREATE USER '$ROLE'@'127.0.0.1' IDENTIFIED BY 'p'`, `CREATE USER '$STRANGER'@'127.0.0.1' IDENTIFIED BY 'p'`},
	current:     func(schema string) string { return "db=" + schema },
	grantee:     func(role string) string { return role + "@127.0.0.1" },
	refusal:     "denied",
	take:        "DO GET_LOCK('key %d', 60)",
	give:        "DO RELEASE_LOCK('key %d')",
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
