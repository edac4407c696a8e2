package sqltest

import (
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
)

// The accounts that servers run as if the tests run as root, in order of preference.
var (
	postgresqlAccounts = []string{"postgres", "nobody"}
	mariadbAccounts    = []string{"mysql", "nobody"}
)

// GiveToPostgreSQL makes the account that PostgreSQL runs as the owner of a file, such as
// the key of a certificate.
func GiveToPostgreSQL(path string) error { return give(postgresqlAccounts, path) }

// GiveToMariaDB is GiveToPostgreSQL for MariaDB.
func GiveToMariaDB(path string) error { return give(mariadbAccounts, path) }

func give(accounts []string, path string) error {
	as, err := account(accounts)
	if err != nil {
		return err
	}
	return as.own(path)
}

// process is a running program that writes a log.
type process struct {
	*child.Process
	logPath string
}

// run starts a program.
func (u user) run(program string, args []string, dir, logPath string) (process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return process{}, err
	}
	defer log.Close() // the process has its own copy
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+dir, "TMPDIR="+dir) // the messages are searched for English words
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = u.attr()
	p, err := child.Start(cmd)
	return process{p, logPath}, err
}

// end sends the signal, and kills the process if it does not end in time.
func (p process) end(with os.Signal) {
	if p.Signal(with) != nil {
		p.Kill()
		return
	}
	select {
	case <-p.Done():
	case <-time.After(patience / 4):
		p.Kill()
	}
}

// log returns what the process has printed, or the end of it if it is long.
func (p process) log() string {
	b, err := os.ReadFile(p.logPath)
	if err != nil {
		return err.Error()
	}
	const most = 16 << 10
	return strings.TrimSpace(string(b[max(0, len(b)-most):]))
}
