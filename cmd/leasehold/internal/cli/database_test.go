//go:build unix

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
)

// aDatabase is a kind of database server.
type aDatabase struct {
	launch    func(settings ...string) (*sqltest.Server, error)
	durable   []string // settings for a server that loses no commit
	manyConns string   // a setting for many connections
	url       string
	app       string // a role
}

// onEachDatabase runs a test on each kind of database server.
func onEachDatabase(t *testing.T, test func(t *testing.T, d aDatabase)) {
	databases := map[string]aDatabase{
		"PostgreSQL": {
			sqltest.LaunchPostgreSQL, []string{"fsync=on", "full_page_writes=on"}, "max_connections=300",
			"postgres://%s:%s@%s/postgres?sslmode=disable%s", "tester",
		},
		"MariaDB": {
			sqltest.LaunchMariaDB, []string{"innodb-flush-log-at-trx-commit=1"}, "max-connections=300",
			"mariadb://%s:%s@%s/?tls=false%s", "tester@127.0.0.1",
		},
	}
	if sqltest.MySQL() != "" {
		d := databases["MariaDB"]
		d.launch = sqltest.LaunchMySQL
		d.durable = append(d.durable, "sync-binlog=1", "tls-version=") // without TLS, as the others are
		databases["MySQL"] = d
	}
	for name, d := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, d)
		})
	}
}

// start starts a server, which ends with the test.
func (d aDatabase) start(t *testing.T, settings ...string) *sqltest.Server {
	t.Helper()
	server, err := d.launch(settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// The commands work on a database: the schema is installed for a role, which then
// locks, lists, shows and examines.
func TestDatabase(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, d aDatabase) { onDatabase(t, d.start(t, d.durable...), d.url, d.app) })
}

func onDatabase(t *testing.T, server *sqltest.Server, url, app string) {
	at := func(user, password, more string) string {
		return "LEASEHOLD_STORE=" + fmt.Sprintf(url, user, password, server.Addr, more)
	}
	owner := newSite(t, at(server.User, server.Password, ""))

	p := owner.start("doctor")
	if code := p.end(); code != 2 || !strings.Contains(p.out.String(), "database-unusable") || !strings.Contains(p.out.String(), "leasehold schema") {
		t.Errorf("doctor without a schema: exit code %d:\n%s%s, want exit code %d, text with %q and %q", code, &p.out, &p.err, 2, "database-unusable", "leasehold schema")
	}
	for range 2 {
		p = owner.start("schema", "--grant", app)
		if code := p.end(); code != 0 || !strings.Contains(p.err.String(), "the table of locks") {
			t.Fatalf("schema: exit code %d: %s, want exit code %d and text with %q", code, &p.err, 0, "the table of locks")
		}
	}
	owner.run(0, "run", "a/b", "--require", "crash-safe", "--", "true")
	p = owner.start("doctor")
	if code := p.end(); code != 0 {
		t.Errorf("doctor: exit code %d:\n%s%s, want exit code %d", code, &p.out, &p.err, 0)
	}
	tortureKinds(t, owner)
	wrong := newSite(t, at(server.User, "secretword", ""))
	p = wrong.start("ls")
	if code := p.end(); code != codeTrouble || strings.Contains(p.err.String(), "secretword") {
		t.Errorf("a wrong password: exit code %d: %s, want exit code %d and no %q", code, &p.err, codeTrouble, "secretword")
	}
	strict := strings.NewReplacer("sslmode=disable", "sslmode=require", "tls=false", "tls=true").Replace(url)
	encrypted := newSite(t, "LEASEHOLD_STORE="+fmt.Sprintf(strict, server.User, server.Password, server.Addr, ""))
	p = encrypted.start("ls")
	if code := p.end(); code != codeTrouble || !strings.Contains(p.err.String(), "refused TLS") && !strings.Contains(p.err.String(), "does not support TLS") {
		t.Errorf("a server without TLS: exit code %d: %s, want the exit code of trouble and \"refused TLS\"", code, &p.err)
	}
	elsewhere := newSite(t, at(server.User, server.Password, "&schema=no%20such"))
	p = elsewhere.start("ls")
	if code := p.end(); code != codeTrouble || !strings.Contains(p.err.String(), "no such") {
		t.Errorf("a schema of an impossible name: exit code %d: %s, want exit code %d and text with %q", code, &p.err, codeTrouble, "no such")
	}
}

// If the URL demands encryption, the command only talks to a server whose certificate is
// by an authority that the URL trusts. A server that demands encryption is named
// if the URL forbids it.
func TestDatabaseOverTLS(t *testing.T) {
	t.Parallel()
	folder := func() string { // that the servers, which run as other users, may read
		dir, err := os.MkdirTemp("", "tls-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	cert, key := redistest.SelfSigned(t, folder())
	others, _ := redistest.SelfSigned(t, folder())
	if err := os.Chmod(cert, 0o644); err != nil {
		t.Fatal(err)
	}
	launch := func(give func(string) error, launch func(...string) (*sqltest.Server, error), settings ...string) *sqltest.Server {
		t.Helper()
		if err := give(key); err != nil {
			t.Fatal(err)
		}
		server, err := launch(settings...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		return server
	}
	pg := launch(sqltest.GiveToPostgreSQL, sqltest.LaunchPostgreSQL, "ssl=on", "ssl_cert_file="+cert, "ssl_key_file="+key)
	ofMySQL := []string{"ssl-cert=" + cert, "ssl-key=" + key, "require-secure-transport=ON"}
	mysqls := map[string]*sqltest.Server{"MariaDB": launch(sqltest.GiveToMariaDB, sqltest.LaunchMariaDB, ofMySQL...)}
	if sqltest.MySQL() != "" { // it runs as the user of this process
		mysqls["MySQL"] = launch(func(string) error { return nil }, sqltest.LaunchMySQL, ofMySQL...)
	}
	url := func(scheme string, s *sqltest.Server, settings string) string {
		return "LEASEHOLD_STORE=" + fmt.Sprintf("%s://%s:%s@%s/?%s", scheme, s.User, s.Password, s.Addr, settings)
	}
	type one struct {
		name, store, trusted string
		says                 string // empty: it works
	}
	all := []one{
		{"PostgreSQL, verified", url("postgres", pg, "database=postgres&sslmode=verify-full&sslrootcert="+cert), "", ""},
		{"PostgreSQL, another authority", url("postgres", pg, "database=postgres&sslmode=verify-full&sslrootcert="+others), "", "certificate"},
	}
	for name, my := range mysqls {
		all = append(all,
			one{name + ", verified", url("mysql", my, "tls=true"), cert, ""},
			one{name + ", another authority", url("mysql", my, "tls=true"), others, "certificate"},
			one{name + ", encrypted and not verified", url("mysql", my, "tls=skip-verify"), others, ""},
			one{name + ", TLS if there is any", url("mysql", my, ""), others, ""},
			one{name + ", that demands TLS", url("mysql", my, "tls=false"), cert, "tls=false"},
		)
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, c.store, "SSL_CERT_FILE="+c.trusted)
			if c.says == "" {
				s.run(0, "schema")
				s.run(0, "run", "a/b", "--", "true")
			} else if p := s.start("ls"); p.end() != codeTrouble || !strings.Contains(p.err.String(), c.says) {
				t.Errorf("ls: %s, want text with %q", &p.err, c.says)
			}
		})
	}
}

// Processes that contend for locks in a database, and are stopped and killed meanwhile,
// never hold a lock at the same time.
func TestTortureOfDatabases(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, d aDatabase) {
		server := d.start(t, d.manyConns)
		s := newSite(t, "LEASEHOLD_STORE="+fmt.Sprintf(d.url, server.User, server.Password, server.Addr, ""))
		s.run(0, "schema")
		p := s.run(0, "lab", "torture", "--procs", "8", "--locks", "2", "--for", "6s", "--ttl", "1s", "--out", filepath.Join(t.TempDir(), "history"))
		if last := lastLineOf(p.out.String()); !strings.HasPrefix(last, "PASS: 0 violations") {
			t.Errorf("torture: %s%s, want %q at the beginning of the last line", &p.out, &p.err, "PASS: 0 violations")
		}
	})
}
