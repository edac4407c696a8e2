package sqltest

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// LaunchPostgreSQL starts a PostgreSQL server with further settings, such as
// "fsync=on". The caller must call Close.
func LaunchPostgreSQL(settings ...string) (*Server, error) {
	e := engine{
		name: "PostgreSQL",
		install: `	Debian, Ubuntu   sudo apt-get install -y postgresql
	Fedora           sudo dnf install -y postgresql-server
	Alpine           sudo apk add postgresql
	macOS            brew install postgresql@17`,
		account: []string{"postgres", "nobody"},
		ready:   "database system is ready to accept connections",
		taken:   "Address already in use",
		end:     syscall.SIGQUIT, // at once, and without leaving shared memory behind
	}
	elsewhere := []string{"/usr/lib/postgresql/*/bin", "/usr/libexec/postgresql*", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin"}
	e.prepare = func(s *Server, run func(string, ...string) error) error {
		initdb, err := e.find([]string{"initdb"}, elsewhere...)
		if err != nil {
			return err
		}
		s.Database = "postgres"
		secret := filepath.Join(s.dir, "secret")
		if err := os.WriteFile(secret, []byte(s.Password+"\n"), 0o600); err != nil {
			return err
		}
		as, err := account(e.account)
		if err != nil {
			return err
		}
		if err := as.own(secret); err != nil {
			return err
		}
		return run(initdb, "--pgdata="+s.data(), "--username="+s.User, "--pwfile="+secret, "--auth=scram-sha-256",
			"--encoding=UTF8", "--locale=C", "--no-sync")
	}
	e.command = func(s *Server, port int) (string, []string, error) {
		initdb, err := e.find([]string{"initdb"}, elsewhere...)
		args := []string{
			"-D", s.data(), "-p", strconv.Itoa(port), "-h", "127.0.0.1", "-k", "",
			"-c", "fsync=off", // nothing in it has to survive the machine
			"-c", "full_page_writes=off", "-c", "shared_buffers=16MB", "-c", "max_connections=200",
			"-c", "max_wal_size=256MB", "-c", "logging_collector=off",
		}
		for _, setting := range settings {
			args = append(args, "-c", setting)
		}
		return filepath.Join(filepath.Dir(initdb), "postgres"), args, err // the same version's
	}
	return e.launch()
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }
