package sqlstoretest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// A URL of MySQL becomes a data source name of the driver, whatever the password is, and opens a
// store.
func TestMySQLURL(t *testing.T) {
	t.Parallel()
	const more = "?connectionAttributes=program_name%3Aleasehold&innodb_lock_wait_timeout=2&timeout=5s&tls=preferred"
	for raw, dsn := range map[string]string{
		"mysql://u:p%40%2F%3A@a:1/d?schema=x&max_ttl=5s": "u:p@/:@tcp(a:1)/d" + more,
		"mariadb://u:p@a":             "u:p@tcp(a:3306)/" + more,
		"mysql://u:p@[::1]/":          "u:p@tcp([::1]:3306)/" + more,
		"mysql://u:@/?socket=/run/my": "u:@unix(/run/my)/" + more,
		"mysql://u:p@a/d?tls=true":    "u:p@tcp(a:3306)/d" + strings.Replace(more, "preferred", "true", 1),
	} {
		u, err := sqlstore.ParseURL(raw)
		if err != nil || u.Dialect != sqlstore.MySQL || u.Driver != "mysql" || u.DSN != dsn {
			t.Errorf("%s: %+v, %v, want %s", raw, u, err, dsn)
		}
	}
	for _, wrong := range []string{
		"mysql://u:secret%@a/b", "mysql://u:secret@a/b?max_ttl=x", "mysql://u:secret@a/b?schema=a.b",
		"mysql://u:secret@a,b/d", "mysql://u%3Av:secret@a/b", "mysql://u:secret@a\nmysql://u:secret@b",
	} {
		if _, err := sqlstore.ParseURL(wrong); !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %v without the password", wrong, err, store.ErrInvalid)
		}
	}
	schema := mariadb.newSchema(t)
	s, err := store.Open(t.Context(), fmt.Sprintf("mariadb://%s:%s@%s/?schema=%s", mariadb.server.User, mariadb.server.Password, mariadb.server.Addr, schema), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mustGet(t, s.(*sqlstore.Store), "x")
}

// A URL without a password gets it from the environment, as the programs of MySQL do.
func TestMySQLPassword(t *testing.T) {
	t.Setenv("MYSQL_PWD", "from the environment")
	for raw, start := range map[string]string{"mysql://u@a/": "u:from the environment@tcp(", "mysql://u:own@a/": "u:own@tcp("} {
		if u, err := sqlstore.ParseURL(raw); err != nil || !strings.HasPrefix(u.DSN, start) {
			t.Errorf("%s: %s, %v, want %s...", raw, u.DSN, err, start)
		}
	}
}

// The client of the database can run the printed script.
func TestScriptForTheClient(t *testing.T) {
	t.Parallel()
	schema := newName()
	script, err := sqlstore.Script(sqlstore.MySQL, schema)
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(mariadb.server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		client := exec.Command("mariadb", "--no-defaults", "--protocol=tcp", "--host", host, "--port", port, "--user", mariadb.server.User)
		client.Env = append(os.Environ(), "MYSQL_PWD="+mariadb.server.Password)
		client.Stdin = strings.NewReader(script)
		if out, err := client.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	mustGet(t, mariadb.open(t, schema, sqlstore.Options{}), "x")
}

// A server that was made read-only is not written to, although the procedures run with rights to
// write. It can be inspected. Its settings and its replicas decide which class it gives.
func TestServerBecomesAReplica(t *testing.T) {
	t.Parallel()
	server, err := sqltest.LaunchMariaDB("log-bin=log", "server-id=7", "innodb-flush-log-at-trx-commit=1", "sync-binlog=0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	on := mariadb.at(server)
	schema := on.newSchema(t)
	db := on.handle(t)
	s := on.open(t, schema, sqlstore.Options{Timeout: 2 * time.Second})
	if got := s.Caps().Class; got != store.Efficiency {
		t.Errorf("class %v with a binary log that is not synced, want %v", got, store.Efficiency)
	}
	l := lease("x")
	mustAcquire(t, s, l)

	on.exec(t, db, "", "SET GLOBAL read_only = 1")
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: lease("y")}); err == nil || !strings.Contains(err.Error(), "connect to the primary") {
		t.Errorf("acquire on a replica: %v, want an error that names the primary", err)
	}
	if st := inspect(t, s, "x"); st.Holder.Owner != l.Owner {
		t.Errorf("inspect on a replica: %+v, want the holder %s", st, l.Owner)
	}
	if _, err := sqlstore.Open(t.Context(), on.dialect, on.driver, on.dsn(), &sqlstore.Options{Schema: schema}); err == nil || !strings.Contains(err.Error(), "connect to the primary") {
		t.Errorf("open on a replica: %v, want an error that names the primary", err)
	}
	on.exec(t, db, "", "SET GLOBAL read_only = 0, GLOBAL sync_binlog = 1")
	mustRelease(t, s, l)

	safe := on.open(t, schema, sqlstore.Options{})
	if got := safe.Caps().Class; got != store.CrashSafe {
		t.Errorf("class %v with a binary log that is synced, want %v", got, store.CrashSafe)
	}
	host, port, err := net.SplitHostPort(server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	replica := exec.CommandContext(t.Context(), "mariadb-binlog", "--no-defaults", "--read-from-remote-server", "--stop-never", "--raw", "--result-file="+t.TempDir()+"/",
		"--protocol=tcp", "--host", host, "--port", port, "--user", server.User, "log.000001")
	replica.Env = append(os.Environ(), "MYSQL_PWD="+server.Password)
	if err := replica.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { replica.Process.Kill(); replica.Wait() })
	eventually.True(t, "the replica is noticed", func() bool {
		return on.open(t, schema, sqlstore.Options{}).Caps().Class == store.Efficiency
	})
	// A binary log of statements cannot replicate the state of a lock.
	old := on.open(t, schema, sqlstore.Options{}, setting("binlog_format", "'STATEMENT'"))
	if _, err := old.Acquire(t.Context(), store.AcquireRequest{Lease: lease("z")}); err == nil || !strings.Contains(err.Error(), "binlog_format") {
		t.Errorf("acquire with a binary log of statements: %v, want an error that names binlog_format", err)
	}
}

// The procedures read the clock after they have locked the row: the wait for the row does not
// shorten a lease, and a token is not behind the clock.
func TestClockAfterTheLock(t *testing.T) {
	t.Parallel()
	s, schema := mariadb.newStore(t)
	db := mariadb.handle(t)
	l := lease("x")
	mustAcquire(t, s, l)
	mustRelease(t, s, l)
	tx := begin(t, db, 0)
	if _, err := tx.ExecContext(t.Context(), mariadb.in(schema, "SELECT * FROM S.locks FOR UPDATE")); err != nil {
		t.Fatal(err)
	}
	w := wait(t, s, lease("x"))
	eventually.True(t, "the request waits", func() bool { return mariadb.waitForRows(t, db, schema) == 1 })
	at := mariadb.number(t, db, schema, "SELECT "+mariadb.now)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if g := w.granted(t); int64(g.Token) < at {
		t.Errorf("token %d, want at least %d, as the row was locked until then", g.Token, at)
	}
}

// A call goes on in the server when its client is gone. A lease that it then gets is released.
func TestAbandonedCall(t *testing.T) {
	t.Parallel()
	schema := mariadb.newSchema(t)
	s := mariadb.open(t, schema, sqlstore.Options{Timeout: 5 * time.Second}, "innodb_lock_wait_timeout=20")
	db := mariadb.handle(t)
	l := lease("x")
	mustAcquire(t, s, l)
	mustRelease(t, s, l)
	tx := begin(t, db, 0)
	if _, err := tx.ExecContext(t.Context(), mariadb.in(schema, "SELECT * FROM S.locks FOR UPDATE")); err != nil {
		t.Fatal(err)
	}
	late := lease("x")
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: late}); !errors.Is(err, store.ErrAmbiguous) {
		t.Errorf("acquire that is not answered: %v, want an error that matches store.ErrAmbiguous", err)
	}
	if err := tx.Rollback(); err != nil { // the call goes on in the server
		t.Fatal(err)
	}
	eventually.True(t, "the owner is refused", func() bool {
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: late})
		return errors.Is(err, store.ErrNotHeld)
	})
	mustGet(t, s, "x")
}

// The leases that are renewed at once fit into the packets of a server that accepts only small ones,
// however long their names are.
func TestRenewalFitsIntoPackets(t *testing.T) {
	t.Parallel()
	server, err := sqltest.LaunchMariaDB("max-allowed-packet=1M")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	on := mariadb.at(server)
	s := on.open(t, on.newSchema(t), sqlstore.Options{})
	var all []store.Lease
	for i := range 512 {
		all = append(all, lease(fmt.Sprint(strings.Repeat("n", 1000), i)))
	}
	for _, i := range []int{0, 255, 511} {
		mustAcquire(t, s, all[i])
	}
	for i, err := range s.Renew(t.Context(), all) {
		switch held := i == 0 || i == 255 || i == 511; {
		case held && err != nil:
			t.Errorf("renew lease %d of 512: %v", i, err)
		case !held && !errors.Is(err, store.ErrNotHeld):
			t.Fatalf("renew lease %d of 512, which is not held: %v, want %v", i, err, store.ErrNotHeld)
		}
	}
}
