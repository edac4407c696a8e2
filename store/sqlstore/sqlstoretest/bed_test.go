package sqlstoretest

import (
	"database/sql"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// patience bounds waits that take milliseconds in most cases.
const patience = 60 * time.Second

// bed is a database server, with all that tests need to know about its kind.
type bed struct {
	name    string
	dialect sqlstore.Dialect
	driver  string
	server  *sqltest.Server
	launch  func(settings ...string) (*sqltest.Server, error)
	// quick has settings for the server of most tests, and durable those of one that loses no
	// commit.
	quick, durable []string
	// lossy has statements that make a durable server lossy, each with the statement that undoes
	// it.
	lossy map[string]string
	// address returns the data source name without settings. readable has settings that
	// make requests readable for a proxy.
	address  func(s *sqltest.Server, database string) string
	readable []string
	// named returns a setting that marks the connections of a test by its schema. kill chooses
	// one of them by the schema and kills it.
	// program finds a client program by its name in MySQL's packages.
	program     func(name string) (string, error)
	named       func(schema string) string
	kill        func(db *sql.DB, schema string) error
	limits      []string // settings: how long a statement, a pause and a session last
	lockTimeout string   // a setting: as short as can be
	isolation   string   // a setting: the level at which transactions start
	readOnly    string   // a setting for transactions that cannot write

	// Queries. S. stands for the schema, and S alone for its name.
	holding     string // the number of calls of hold that wait; see waitForRows
	denied      []string
	createRoles []string                   // roles named $ROLE and $STRANGER, with the password p
	current     func(schema string) string // a setting for tables without a schema
	grantee     func(role string) string
	refusal     string // in an error about rights
	take, give  string // the server's own lock %d, of a session
}

// beds are the databases of most tests, and mysqls those of the dialect MySQL. They include
// MySQL itself if LEASEHOLD_MYSQLD names one.
var beds, mysqls = func() (all, mysqls []*bed) {
	mysqls = []*bed{mariadb}
	if sqltest.MySQL() != "" {
		mysqls = append(mysqls, mysql)
	}
	return append([]*bed{postgres}, mysqls...), mysqls
}()

// everywhere runs a test on each kind of database.
func everywhere(t *testing.T, test func(t *testing.T, on *bed)) { on(t, beds, test) }

// onMySQL runs a test on each database of the dialect MySQL.
func onMySQL(t *testing.T, test func(t *testing.T, on *bed)) { on(t, mysqls, test) }

func on(t *testing.T, beds []*bed, test func(t *testing.T, on *bed)) {
	t.Parallel()
	for _, on := range beds {
		t.Run(on.name, func(t *testing.T) { test(t, on) })
	}
}

// dsn returns the data source name of the server, with settings such as "timeout=5s", and
// "db=NAME" for a MySQL database to be in.
func (on *bed) dsn(settings ...string) string {
	database := ""
	settings = slices.DeleteFunc(slices.Clone(settings), func(s string) bool {
		name, is := strings.CutPrefix(s, "db=")
		if is {
			database = name
		}
		return is
	})
	return on.address(on.server, database) + strings.Join(settings, "&")
}

// at returns the bed for another server of the same kind.
func (on *bed) at(s *sqltest.Server) *bed {
	other := *on
	other.server = s
	return &other
}

var schemas atomic.Int64

// newName returns a new name for a schema.
func newName() string { return fmt.Sprintf("locks_%d", schemas.Add(1)) }

// newSchema makes the table in a schema of the test's own.
func (on *bed) newSchema(t testing.TB) string {
	t.Helper()
	schema := newName()
	if err := sqlstore.Install(t.Context(), on.handle(t), on.dialect, schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// handle returns a handle that is closed at the end of the test.
func (on *bed) handle(t testing.TB, settings ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open(on.driver, on.dsn(settings...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// newBy opens a store over a handle that is closed at the end of the test.
func newBy(t testing.TB, d sqlstore.Dialect, driver, dsn string, o *sqlstore.Options) (*store.Store, error) {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxIdleConns(33)
	t.Cleanup(func() { db.Close() })
	return sqlstore.New(t.Context(), db, d, o)
}

// open opens a store that is closed at the end of the test.
func (on *bed) open(t testing.TB, schema string, o sqlstore.Options, settings ...string) *store.Store {
	t.Helper()
	o.Schema = schema
	s, err := newBy(t, on.dialect, on.driver, on.dsn(settings...), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// newStore opens a store in a new schema of the common server.
func (on *bed) newStore(t testing.TB) (*store.Store, string) {
	t.Helper()
	schema := on.newSchema(t)
	return on.open(t, schema, sqlstore.Options{}), schema
}

// in returns a query for a schema. Queries mark arguments with ? for all kinds of databases.
func (on *bed) in(schema, query string) string {
	query = strings.NewReplacer("S.", schema+".", "'S'", "'"+schema+"'").Replace(query)
	if on.dialect == sqlstore.PostgreSQL {
		query = strings.ReplaceAll(query, "`", "")
		for n := 1; strings.Contains(query, "?"); n++ {
			query = strings.Replace(query, "?", fmt.Sprint("$", n), 1)
		}
	}
	return query
}

// exec runs a statement in a schema.
func (on *bed) exec(t testing.TB, db *sql.DB, schema, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), on.in(schema, query), args...); err != nil {
		t.Fatalf("%.200s: %v", query, err)
	}
}

// number returns the number that a query selects.
func (on *bed) number(t testing.TB, db *sql.DB, schema, query string, args ...any) (n int64) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), on.in(schema, query), args...).Scan(&n); err != nil {
		t.Fatalf("%.200s: %v", query, err)
	}
	return n
}

var asking sync.Mutex

// waitForRows returns how many calls of hold wait for a row.
func (on *bed) waitForRows(t testing.TB, db *sql.DB, schema string) int64 {
	t.Helper()
	return on.waitsForRows(t, db, schema, on.holding)
}

// waitsForRows returns the number that a query about waits for rows selects. InnoDB renews its
// answer only after a tenth of a second without such a query, so tests ask one after the other.
func (on *bed) waitsForRows(t testing.TB, db *sql.DB, schema, query string) int64 {
	t.Helper()
	asking.Lock()
	defer asking.Unlock()
	time.Sleep(150 * time.Millisecond)
	return on.number(t, db, schema, query)
}

func lease(name string) store.Lease {
	return store.Lease{Name: name, Owner: store.NewOwner(), TTL: 30 * time.Second}
}

// level returns a setting for transactions that start at that isolation level, such as
// READ-UNCOMMITTED.
func (on *bed) level(name string) string {
	if on.dialect == sqlstore.PostgreSQL {
		return setting(on.isolation, strings.ToLower(strings.ReplaceAll(name, "-", " ")))
	}
	return setting(on.isolation, "'"+name+"'")
}

// setting returns a setting of a connection in a URL.
func setting(name, value string) string { return name + "=" + url.PathEscape(value) }
