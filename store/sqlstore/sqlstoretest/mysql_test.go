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
	for _, on := range mysqls {
		s := openURL(t, fmt.Sprintf("%s://%s:%s@%s/?schema=%s", strings.ToLower(on.name), on.server.User, on.server.Password, on.server.Addr, on.newSchema(t)))
		mustGet(t, s, "x")
	}
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
	onMySQL(t, func(t *testing.T, on *bed) {
		t.Parallel()
		schema := newName()
		script, err := sqlstore.Script(sqlstore.MySQL, schema)
		if err != nil {
			t.Fatal(err)
		}
		host, port, err := net.SplitHostPort(on.server.Addr)
		if err != nil {
			t.Fatal(err)
		}
		program, err := on.program("mysql")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			client := exec.Command(program, "--no-defaults", "--protocol=tcp", "--host", host, "--port", port, "--user", on.server.User)
			client.Env = append(os.Environ(), "MYSQL_PWD="+on.server.Password)
			client.Stdin = strings.NewReader(script)
			if out, err := client.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		mustGet(t, on.open(t, schema, sqlstore.Options{}), "x")
	})
}

// A server that was made read-only is not written to, although the user has the right to, and is not
// asked, since it may be behind. Its settings and its replicas decide which class it gives.
func TestServerBecomesAReplica(t *testing.T) {
	onMySQL(t, func(t *testing.T, on *bed) {
		t.Parallel()
		server, err := on.launch("log-bin=log", "server-id=7", "innodb-flush-log-at-trx-commit=1", "sync-binlog=0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		on = on.at(server)
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
		if _, err := s.Inspect(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "connect to the primary") {
			t.Errorf("inspect on a replica, which may be behind: %v, want an error that names the primary", err)
		}
		if _, err := newBy(t, on.dialect, on.driver, on.dsn(), &sqlstore.Options{Schema: schema}); err == nil || !strings.Contains(err.Error(), "connect to the primary") {
			t.Errorf("open on a replica: %v, want an error that names the primary", err)
		}
		on.exec(t, db, "", "SET GLOBAL read_only = 0, GLOBAL sync_binlog = 1")
		mustRelease(t, s, l)

		safe := on.open(t, schema, sqlstore.Options{})
		if got := safe.Caps().Class; got != store.CrashSafe {
			t.Errorf("class %v with a binary log that is synced, want %v", got, store.CrashSafe)
		}
		for lossy, undo := range on.lossy {
			on.exec(t, db, "", lossy)
			if got := on.open(t, schema, sqlstore.Options{}).Caps().Class; got != store.Efficiency {
				t.Errorf("class %v after %s, want %v", got, lossy, store.Efficiency)
			}
			on.exec(t, db, "", undo)
		}
		host, port, err := net.SplitHostPort(server.Addr)
		if err != nil {
			t.Fatal(err)
		}
		program, err := on.program("mysqlbinlog")
		if err != nil {
			t.Fatal(err)
		}
		replica := exec.CommandContext(t.Context(), program, "--no-defaults", "--read-from-remote-server", "--stop-never", "--raw", "--result-file="+t.TempDir()+"/",
			"--protocol=tcp", "--host", host, "--port", port, "--user", server.User, "log.000001")
		replica.Env = append(os.Environ(), "MYSQL_PWD="+server.Password)
		if err := replica.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { replica.Process.Kill(); replica.Wait() })
		eventually.True(t, "the replica is noticed", func() bool {
			return on.open(t, schema, sqlstore.Options{}).Caps().Class == store.Efficiency
		})
	})
}

// A statement goes on in the server when its client is gone. It takes no effect then, or is undone.
func TestAbandonedCall(t *testing.T) {
	onMySQL(t, func(t *testing.T, on *bed) {
		t.Parallel()
		schema := on.newSchema(t)
		s := on.open(t, schema, sqlstore.Options{Timeout: 5 * time.Second}, "innodb_lock_wait_timeout=20")
		db := on.handle(t)
		l := lease("x")
		mustAcquire(t, s, l)
		mustRelease(t, s, l)
		tx := begin(t, db, 0)
		if _, err := tx.ExecContext(t.Context(), on.in(schema, "SELECT * FROM S.records FOR UPDATE")); err != nil {
			t.Fatal(err)
		}
		late := lease("x")
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: late}); !errors.Is(err, store.ErrAmbiguous) {
			t.Errorf("acquire that is not answered: %v, want an error that matches store.ErrAmbiguous", err)
		}
		if err := tx.Rollback(); err != nil { // the call goes on in the server
			t.Fatal(err)
		}
		mustGet(t, s, "x")
		if st := inspect(t, s, "x"); st.Held {
			t.Errorf("inspect: %+v, want a free lock", st)
		}
	})
}
