//go:build unix

package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// The commands work on a database: the schema is installed for a role, which then
// locks, lists, shows and examines.
func TestDatabase(t *testing.T) {
	for name, c := range map[string]struct {
		launch func() (*sqltest.Server, error)
		url    string
		app    string
	}{
		"PostgreSQL": {
			func() (*sqltest.Server, error) { return sqltest.LaunchPostgreSQL("fsync=on", "full_page_writes=on") },
			"postgres://%s:%s@%s/postgres?sslmode=disable%s", "tester",
		},
		"MariaDB": {
			func() (*sqltest.Server, error) { return sqltest.LaunchMariaDB("innodb-flush-log-at-trx-commit=1") },
			"mariadb://%s:%s@%s/?tls=false%s", "tester@127.0.0.1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, err := c.launch()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Close)
			onDatabase(t, server, c.url, c.app)
		})
	}
}

func onDatabase(t *testing.T, server *sqltest.Server, url, app string) {
	at := func(user, password, more string) string {
		return "LEASEHOLD_STORE=" + fmt.Sprintf(url, user, password, server.Addr, more)
	}
	owner := newSite(t, at(server.User, server.Password, ""))

	p := owner.start("doctor")
	if code := p.end(); code != 2 || !strings.Contains(p.out.String(), "database-unusable") || !strings.Contains(p.out.String(), "leasehold schema") {
		t.Errorf("doctor without a schema: exit code %d:\n%s%s", code, &p.out, &p.err)
	}
	for range 2 {
		p = owner.start("schema", "--grant", app)
		if code := p.end(); code != 0 || !strings.Contains(p.err.String(), fmt.Sprint("version ", sqlstore.SchemaVersion)) {
			t.Fatalf("schema: exit code %d: %s", code, &p.err)
		}
	}
	p = owner.start("run", "a/b", "--require", "crash-safe", "--", binary, "show", "a/b", "--json")
	if code := p.end(); code != 0 || !strings.Contains(p.out.String(), `"held": true`) && !strings.Contains(p.out.String(), `"held":true`) {
		t.Errorf("run and show: exit code %d: %s%s", code, &p.out, &p.err)
	}
	p = owner.start("run", "a/b", "--", binary, "ls", "a/")
	if code := p.end(); code != 0 || !strings.Contains(p.out.String(), "a/b") {
		t.Errorf("run and ls: exit code %d: %s%s", code, &p.out, &p.err)
	}
	p = owner.start("run", "a/b", "--", binary, "run", "--try", "a/c", "--", "true")
	if code := p.end(); code != 0 {
		t.Errorf("run in run: exit code %d: %s%s", code, &p.out, &p.err)
	}
	p = owner.start("doctor")
	if code := p.end(); code != 0 {
		t.Errorf("doctor: exit code %d:\n%s%s", code, &p.out, &p.err)
	}
	readersShare(t, owner)
	permitsAreNumbered(t, owner)
	breakTellsTheHolder(t, owner)
	permitsChange(t, owner)
	tortureKinds(t, owner)
	wrong := newSite(t, at(server.User, "secretword", ""))
	p = wrong.start("ls")
	if code := p.end(); code != codeTrouble || strings.Contains(p.err.String(), "secretword") {
		t.Errorf("a wrong password: exit code %d: %s", code, &p.err)
	}
	elsewhere := newSite(t, at(server.User, server.Password, "&schema=no%20such"))
	p = elsewhere.start("ls")
	if code := p.end(); code != codeTrouble || !strings.Contains(p.err.String(), "no such") {
		t.Errorf("a schema that cannot be: exit code %d: %s", code, &p.err)
	}
}

// Processes that compete for locks in PostgreSQL, and are stopped and killed meanwhile,
// never hold a lock at the same time.
func TestTortureOfPostgreSQL(t *testing.T) {
	t.Parallel()
	server, err := sqltest.LaunchPostgreSQL("max_connections=300")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	s := newSite(t, fmt.Sprintf("LEASEHOLD_STORE=postgres://%s:%s@%s/%s?sslmode=disable", server.User, server.Password, server.Addr, server.Database))
	s.run(0, "schema")
	p := s.run(0, "lab", "torture", "--procs", "8", "--locks", "2", "--for", "6s", "--ttl", "1s", "--out", filepath.Join(t.TempDir(), "history"))
	if last := lastLineOf(p.out.String()); !strings.HasPrefix(last, "PASS: 0 violations") {
		t.Errorf("torture: %s%s", &p.out, &p.err)
	}
}

// The SQL is printed without a connection, and only for a database.
func TestSchemaIsPrinted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.start("schema", "--store", "postgres:///?schema=locks", "--print", "--grant", "app")
	if code := p.end(); code != 0 || !strings.Contains(p.out.String(), "CREATE TABLE IF NOT EXISTS locks.locks") || !strings.Contains(p.out.String(), `TO "app";`) {
		t.Errorf("schema --print: exit code %d: %s", code, &p.err)
	}
	p = s.start("schema", "--store", "mysql://?schema=lock_s", "--print", "--grant", "app@10.0.0.1")
	if code := p.end(); code != 0 || !strings.Contains(p.out.String(), "CREATE TABLE IF NOT EXISTS lock_s.locks") || !strings.Contains(p.out.String(), "GRANT EXECUTE ON `lock\\_s`.* TO 'app'@'10.0.0.1';") {
		t.Errorf("schema --print: exit code %d: %s%s", code, &p.out, &p.err)
	}
	p = s.start("schema", "--store", "postgres:///", "--print", "--grant", `a"b, "night ""shift"", two",app`, "--grant", "$$;x")
	code := p.end()
	for _, role := range []string{`"a""b"`, `"night ""shift"", two"`, `"app"`, `"$$;x"`} {
		if code != 0 || !strings.Contains(p.out.String(), "GRANT USAGE ON SCHEMA leasehold TO "+role+";") {
			t.Errorf("schema --print: no rights for %s: exit code %d: %s", role, code, &p.err)
		}
	}
	for _, list := range []string{"", "a,,b", "a,", `"a`, `"a"b`, `""`} {
		p = s.start("schema", "--store", "postgres:///", "--print", "--grant", list)
		if code := p.end(); code == 0 {
			t.Errorf("--grant %s: exit code %d: %s%s", list, code, &p.out, &p.err)
		}
	}
	p = s.start("schema", "--print")
	if code := p.end(); code != codeTrouble || !strings.Contains(p.err.String(), "postgres://") {
		t.Errorf("schema of a file: exit code %d: %s", code, &p.err)
	}
}
