package sqltest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// MySQL is the program of a MySQL server that the tests start besides MariaDB: the one
// that the environment variable LEASEHOLD_MYSQLD names. It is empty if they start none.
// "make mysql" installs one. A mysqld in PATH is not used unasked: it can be MariaDB's, and
// systems confine their own one to the directories of its service.
func MySQL() string { return os.Getenv("LEASEHOLD_MYSQLD") }

// MySQLClient finds a client program of MySQL's, such as mysqlbinlog: beside the server or
// in PATH.
func MySQLClient(name string) (string, error) {
	if beside := filepath.Join(filepath.Dir(MySQL()), name); isProgram(beside) {
		return beside, nil
	}
	return exec.LookPath(name)
}

func isProgram(path string) bool {
	is, err := os.Stat(path)
	return err == nil && is.Mode().IsRegular() && is.Mode()&0o111 != 0
}

// asRoot allows the server to run as root if the tests do. An account with fewer rights
// could not read a server that is installed in a directory of root's. For other users it
// has no meaning.
const asRoot = "user=root"

// LaunchMySQL is LaunchMariaDB for the server that MySQL names. Its binary log is on, as
// it is by default.
func LaunchMySQL(settings ...string) (*Server, error) {
	e := engine{
		name:  "MySQL",
		ready: "ready for connections",
		taken: "Address already in use",
		end:   syscall.SIGKILL, // its files are removed with it
	}
	e.prepare = func(s *Server, run func(string, ...string) error) error {
		if err := e.writeFirst(s); err != nil {
			return err
		}
		return run(MySQL(), "--no-defaults", "--datadir="+s.data(), "--"+asRoot, "--initialize-insecure", "--innodb-redo-log-capacity=64M",
			// Nothing is worth keeping yet, and this takes half the time.
			"--skip-log-bin", "--innodb-flush-method=nosync", "--innodb-doublewrite=OFF", "--performance-schema=OFF")
	}
	e.command = func(s *Server, port int) (string, []string, error) {
		own := []string{asRoot, "mysqlx=OFF", "secure-file-priv=NULL", "sync-binlog=0", "server-id=1", "innodb-redo-log-capacity=64M"}
		return MySQL(), s.mysqlArguments(port, append(own, settings...)), nil
	}
	return e.launch()
}

// mysqlArguments returns the arguments that MySQL and MariaDB have in common, and more
// settings.
func (s *Server) mysqlArguments(port int, settings []string) []string {
	args := []string{
		"--no-defaults", "--datadir=" + s.data(), "--init-file=" + s.first(),
		"--port=" + strconv.Itoa(port), "--bind-address=127.0.0.1", "--skip-name-resolve",
		"--socket=" + filepath.Join(s.dir, "socket"), "--pid-file=" + filepath.Join(s.dir, "pid"),
		"--innodb-flush-log-at-trx-commit=0", // no data has to survive a crash of the machine
		"--innodb-buffer-pool-size=32M", "--max-connections=200",
	}
	for _, setting := range settings {
		args = append(args, "--"+setting)
	}
	return args
}

// writeFirst writes what the server executes when it starts: it makes the user of the
// tests. Root can only come through a socket in our directory.
func (e engine) writeFirst(s *Server) error {
	as, err := account(e.account)
	if err != nil {
		return err
	}
	return as.write(s.first(), fmt.Sprintf("CREATE DATABASE IF NOT EXISTS %[1]s;\nCREATE USER IF NOT EXISTS '%[2]s'@'127.0.0.1' IDENTIFIED BY '%[3]s';\nGRANT ALL ON *.* TO '%[2]s'@'127.0.0.1' WITH GRANT OPTION;\n",
		s.Database, s.User, s.Password))
}

func (s *Server) first() string { return filepath.Join(s.dir, "first.sql") }
