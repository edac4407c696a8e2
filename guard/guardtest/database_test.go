package guardtest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/guard/sqlguard"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
)

// patience bounds waits for what takes milliseconds on a machine that is not busy.
const patience = 60 * time.Second

// flavour is a kind of database, set up in one way.
type flavour struct {
	name    string
	dialect sqlguard.Dialect
	driver  string
	// source is the data source name; dir is for databases that are files.
	source func(dir string) string
}

func (f flavour) file() bool { return f.dialect == sqlguard.SQLite }

// postgresAt is a PostgreSQL that starts transactions at that isolation level.
func postgresAt(level string) flavour {
	return flavour{"PostgreSQL " + level, sqlguard.PostgreSQL, "pgx", func(string) string {
		return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable&default_transaction_isolation=%s",
			postgres.User, postgres.Password, postgres.Addr, postgres.Database, url.PathEscape(level))
	}}
}

func mariadbAt(level string) flavour {
	return flavour{"MariaDB " + level, sqlguard.MySQL, "mysql", func(string) string { return mysqlSource(mariadb, "tx_isolation", level) }}
}

func mysqlAt(level string) flavour {
	return flavour{"MySQL " + level, sqlguard.MySQL, "mysql", func(string) string { return mysqlSource(mysql, "transaction_isolation", level) }}
}

// mysqlSource returns the data source name of a server, with the value of a variable.
func mysqlSource(s *sqltest.Server, variable, level string) string {
	return fmt.Sprintf("%s:%s@tcp(%s)/%s?%s=%s", s.User, s.Password, s.Addr, s.Database, variable,
		url.QueryEscape("'"+strings.ReplaceAll(level, " ", "-")+"'"))
}

// sqliteWith is an SQLite file. With its classic journal, a reader can
// keep a writer from committing, so there the driver has to wait a little; with
// wal, waiting is up to the guard.
func sqliteWith(journal string) flavour {
	return flavour{"SQLite " + journal, sqlguard.SQLite, "sqlite", func(dir string) string {
		dsn := "file:" + filepath.Join(dir, "guarded.db") + "?_pragma=journal_mode(" + journal + ")"
		if journal != "wal" {
			dsn += "&_pragma=busy_timeout(10000)"
		}
		return dsn
	}}
}

// usual are the flavours with the default isolation levels, and flavours are all. They
// include MySQL itself if sqltest.MySQL names one.
var usual, flavours = func() (usual, all []flavour) {
	usual = []flavour{postgresAt("read committed"), mariadbAt("repeatable read"), sqliteWith("delete")}
	others := []flavour{
		postgresAt("repeatable read"), postgresAt("serializable"),
		mariadbAt("read committed"), mariadbAt("serializable"), sqliteWith("wal"),
	}
	if sqltest.MySQL() != "" {
		usual = append(usual, mysqlAt("repeatable read"))
		others = append(others, mysqlAt("read committed"), mysqlAt("serializable"))
	}
	return usual, slices.Concat(usual, others)
}()

// usualServer reports whether it is a server with its default isolation level.
func (f flavour) usualServer() bool {
	return !f.file() && slices.ContainsFunc(usual, func(u flavour) bool { return u.name == f.name })
}

// database is an open database of a flavour, for one test.
type database struct {
	flavour
	*sql.DB
	dsn   string
	id    string // makes names of tables unique
	guard *sqlguard.Guard
}

var tests atomic.Int64

func (f flavour) open(t *testing.T) *database {
	t.Helper()
	d := &database{flavour: f, dsn: f.source(t.TempDir()), id: fmt.Sprint(tests.Add(1))}
	d.DB = openSQL(t, f.driver, d.dsn)
	var err error
	if d.guard, err = sqlguard.New(f.dialect, &sqlguard.Options{Table: d.table("fences")}); err != nil {
		t.Fatal(err)
	}
	if err := d.guard.CreateTable(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return d
}

func openSQL(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// table is the name of a table of this test only.
func (d *database) table(name string) string { return name + "_" + d.id }

func (d *database) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	if _, err := d.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// rebind replaces ? by the placeholders of the dialect.
func (d *database) rebind(query string) string { return rebind(d.dialect, query) }

func rebind(dialect sqlguard.Dialect, query string) string {
	if dialect != sqlguard.PostgreSQL {
		return query
	}
	for n := 1; strings.Contains(query, "?"); n++ {
		query = strings.Replace(query, "?", fmt.Sprintf("$%d", n), 1)
	}
	return query
}

// waiters waits until n statements that name the table wait for a lock. On SQLite it
// returns at once, as waiting statements cannot be listed there.
func (d *database) waiters(t *testing.T, table string, n int) {
	t.Helper()
	question := map[sqlguard.Dialect]string{
		sqlguard.PostgreSQL: `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1`,
		// Not innodb_trx, which shows nothing new if it is read often.
		sqlguard.MySQL: `SELECT count(*) FROM information_schema.processlist WHERE command <> 'Sleep' AND info LIKE ? AND id <> connection_id()`,
	}[d.dialect]
	if question == "" {
		return
	}
	eventually.True(t, fmt.Sprintf("%d statements wait for a lock", n), func() bool {
		var got int
		if err := d.QueryRowContext(t.Context(), question, "%"+table+"%").Scan(&got); err != nil {
			t.Fatal(err)
		}
		return got >= n
	})
}

// onEach runs a test on all flavours.
func onEach(t *testing.T, test func(t *testing.T, d *database)) { on(t, flavours, test) }

func on(t *testing.T, these []flavour, test func(t *testing.T, d *database)) {
	t.Parallel()
	for _, f := range these {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			test(t, f.open(t))
		})
	}
}

// journal is a table of what writers have done, in the order of the transactions.
type journal struct {
	*database
	name string
}

func (d *database) journal(t *testing.T) journal {
	t.Helper()
	j := journal{d, d.table("journal")}
	d.exec(t, `CREATE TABLE `+j.name+` (resource VARCHAR(100) NOT NULL, seq BIGINT NOT NULL, token BIGINT NOT NULL, PRIMARY KEY (resource, seq))`)
	return j
}

// add appends a row.
func (j journal) add(ctx context.Context, tx *sql.Tx, resource string, token fence.Token) error {
	var last int64
	if err := tx.QueryRowContext(ctx, j.rebind(`SELECT COALESCE(MAX(seq), 0) FROM `+j.name+` WHERE resource = ?`), resource).Scan(&last); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, j.rebind(`INSERT INTO `+j.name+` (resource, seq, token) VALUES (?, ?, ?)`), resource, last+1, int64(token))
	return err
}

// read returns the tokens in the journal.
func (j journal) read(t *testing.T, resource string) []fence.Token {
	t.Helper()
	rows, err := j.QueryContext(t.Context(), j.rebind(`SELECT token FROM `+j.name+` WHERE resource = ? ORDER BY seq`), resource)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []fence.Token
	for rows.Next() {
		var token int64
		if err := rows.Scan(&token); err != nil {
			t.Fatal(err)
		}
		all = append(all, fence.Token(token))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
