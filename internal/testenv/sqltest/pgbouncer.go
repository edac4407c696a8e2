package sqltest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// LaunchPgBouncer starts a PgBouncer in front of a PostgreSQL server. Each
// transaction of its clients gets any of at most size connections to the server, unless
// one of the further settings is another pool_mode. The result has the server's user,
// password and database. The caller must call Close.
func LaunchPgBouncer(behind *Server, size int, settings ...string) (*Server, error) {
	e := engine{
		name: "PgBouncer",
		install: `	Debian, Ubuntu   sudo apt-get install -y pgbouncer
	Fedora           sudo dnf install -y pgbouncer
	Alpine           sudo apk add pgbouncer
	macOS            brew install pgbouncer`,
		account: []string{"postgres", "nobody"},
		ready:   "process up",
		taken:   "Address already in use",
		end:     syscall.SIGQUIT,
	}
	host, at, err := net.SplitHostPort(behind.Addr)
	if err != nil {
		return nil, err
	}
	as, err := account(e.account)
	if err != nil {
		return nil, err
	}
	e.prepare = func(s *Server, _ func(string, ...string) error) error {
		s.User, s.Password, s.Database = behind.User, behind.Password, behind.Database
		return as.write(filepath.Join(s.dir, "users"), fmt.Sprintf("%q %q\n", s.User, s.Password))
	}
	e.command = func(s *Server, port int) (string, []string, error) {
		file := filepath.Join(s.dir, "pgbouncer.ini")
		err := as.write(file, fmt.Sprintf(`[databases]
%[1]s = host=%[2]s port=%[3]s dbname=%[1]s user=%[4]s password=%[5]s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %[6]d
unix_socket_dir =
auth_type = plain
auth_file = %[7]s
pool_mode = transaction
default_pool_size = %[8]d
max_client_conn = 200
ignore_startup_parameters = extra_float_digits
%[9]s
`, s.Database, host, at, s.User, s.Password, port, filepath.Join(s.dir, "users"), size, strings.Join(settings, "\n")))
		if err != nil {
			return "", nil, err
		}
		program, err := e.find([]string{"pgbouncer"}, "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin")
		return program, []string{file}, err
	}
	return e.launch()
}

// write writes a file that only the user can read.
func (u user) write(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return u.own(path)
}
