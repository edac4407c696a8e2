package sqltest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// LaunchMariaDB starts a MariaDB server with further settings, such as
// "innodb-flush-log-at-trx-commit=1". The caller must call Close.
func LaunchMariaDB(settings ...string) (*Server, error) {
	e := engine{
		name: "MariaDB",
		install: `	Debian, Ubuntu   sudo apt-get install -y mariadb-server
	Fedora           sudo dnf install -y mariadb-server
	Alpine           sudo apk add mariadb
	macOS            brew install mariadb`,
		account: mariadbAccounts,
		ready:   "ready for connections",
		taken:   "Address already in use",
		end:     syscall.SIGKILL, // its files are removed with it
	}
	elsewhere := []string{"/usr/sbin", "/usr/libexec", "/opt/homebrew/opt/mariadb/bin", "/usr/local/opt/mariadb/bin"}
	e.prepare = func(s *Server, run func(string, ...string) error) error {
		install, err := e.find([]string{"mariadb-install-db"}, elsewhere...)
		if err != nil {
			return err
		}
		// Root can only come through a socket in our directory; the user of the
		// tests is made when the server starts.
		first := fmt.Sprintf("CREATE DATABASE IF NOT EXISTS %[1]s;\nCREATE USER IF NOT EXISTS '%[2]s'@'127.0.0.1' IDENTIFIED BY '%[3]s';\nGRANT ALL ON *.* TO '%[2]s'@'127.0.0.1' WITH GRANT OPTION;\n",
			s.Database, s.User, s.Password)
		if err := os.WriteFile(s.first(), []byte(first), 0o600); err != nil {
			return err
		}
		as, err := account(e.account)
		if err != nil {
			return err
		}
		if err := as.own(s.first()); err != nil {
			return err
		}
		return run(install, "--no-defaults", "--datadir="+s.data(), "--skip-test-db", "--skip-name-resolve",
			"--auth-root-authentication-method=socket", "--innodb-log-file-size=4M")
	}
	e.command = func(s *Server, port int) (string, []string, error) {
		mariadbd, err := e.find([]string{"mariadbd"}, elsewhere...)
		args := []string{
			"--no-defaults", "--datadir=" + s.data(), "--init-file=" + s.first(),
			"--port=" + strconv.Itoa(port), "--bind-address=127.0.0.1", "--skip-name-resolve",
			"--socket=" + filepath.Join(s.dir, "socket"), "--pid-file=" + filepath.Join(s.dir, "pid"),
			"--innodb-flush-log-at-trx-commit=0", // no data has to survive a crash of the machine
			"--innodb-buffer-pool-size=32M", "--innodb-log-file-size=4M", "--max-connections=200",
		}
		for _, setting := range settings {
			args = append(args, "--"+setting)
		}
		return mariadbd, args, err
	}
	return e.launch()
}

func (s *Server) first() string { return filepath.Join(s.dir, "first.sql") }
