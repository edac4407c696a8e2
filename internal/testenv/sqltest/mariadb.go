package sqltest

import "syscall"

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
		if err := e.writeFirst(s); err != nil {
			return err
		}
		return run(install, "--no-defaults", "--datadir="+s.data(), "--skip-test-db", "--skip-name-resolve",
			"--auth-root-authentication-method=socket", "--innodb-log-file-size=4M")
	}
	e.command = func(s *Server, port int) (string, []string, error) {
		mariadbd, err := e.find([]string{"mariadbd"}, elsewhere...)
		return mariadbd, s.mysqlArguments(port, append([]string{"innodb-log-file-size=4M"}, settings...)), err
	}
	return e.launch()
}
