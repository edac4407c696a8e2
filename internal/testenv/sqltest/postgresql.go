package sqltest

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"syscall"
)

// LaunchPostgreSQL starts a PostgreSQL server with further settings, such as
// "fsync=on". The caller must call Close.
func LaunchPostgreSQL(settings ...string) (*Server, error) {
	e := postgresql(settings)
	e.prepare = func(s *Server, run func(string, ...string) error) error {
		initdb, err := e.postgresqlProgram("initdb")
		if err != nil {
			return err
		}
		s.Database = "postgres"
		secret := filepath.Join(s.dir, "secret")
		as, err := account(e.account)
		if err != nil {
			return err
		}
		verifier, err := quickVerifier(s.Password)
		if err != nil {
			return err
		}
		if err := as.write(secret, verifier+"\n"); err != nil {
			return err
		}
		return run(initdb, "--pgdata="+s.data(), "--username="+s.User, "--pwfile="+secret, "--auth=scram-sha-256",
			"--encoding=UTF8", "--locale=C", "--no-sync")
	}
	return e.launch()
}

// quickVerifier returns what the server stores of a password, for a login that hashes the password
// once. To hash it 4096 times, as is usual, took a seventh of the time of all tests of PostgreSQL.
// The format is that of pg_authid, with the keys of RFC 5802.
func quickVerifier(password string) (string, error) {
	salt := []byte(rand.Text())
	salted, err := pbkdf2.Key(sha256.New, password, salt, 1, sha256.Size)
	if err != nil {
		return "", err
	}
	mac := func(text string) []byte {
		h := hmac.New(sha256.New, salted)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	stored, text := sha256.Sum256(mac("Client Key")), base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$1:%s$%s:%s", text(salt), text(stored[:]), text(mac("Server Key"))), nil
}

// LaunchStandby starts a hot standby of a PostgreSQL server, with further settings. It has
// the same user, password and database. The caller must call Close.
func LaunchStandby(primary *Server, settings ...string) (*Server, error) {
	e := postgresql(settings)
	e.ready = "database system is ready to accept read-only connections"
	e.prepare = func(s *Server, run func(string, ...string) error) error {
		backup, err := e.postgresqlProgram("pg_basebackup")
		if err != nil {
			return err
		}
		s.User, s.Password, s.Database = primary.User, primary.Password, primary.Database
		host, port, err := net.SplitHostPort(primary.Addr)
		if err != nil {
			return err
		}
		return run(backup, "--pgdata="+s.data(), "--checkpoint=fast", "--no-sync", "--write-recovery-conf",
			fmt.Sprintf("--dbname=host=%s port=%s user=%s password=%s", host, port, s.User, s.Password))
	}
	return e.launch()
}

// postgresql returns an engine without prepare.
func postgresql(settings []string) engine {
	e := engine{
		name: "PostgreSQL",
		install: `	Debian, Ubuntu   sudo apt-get install -y postgresql
	Fedora           sudo dnf install -y postgresql-server
	Alpine           sudo apk add postgresql
	macOS            brew install postgresql@17`,
		account: postgresqlAccounts,
		ready:   "database system is ready to accept connections",
		taken:   "Address already in use",
		end:     syscall.SIGQUIT, // at once, and without leaving shared memory behind
	}
	e.command = func(s *Server, port int) (string, []string, error) {
		program, err := e.postgresqlProgram("postgres")
		args := []string{
			"-D", s.data(), "-p", strconv.Itoa(port), "-h", "127.0.0.1", "-k", "",
			"-c", "fsync=off", // no data has to survive a crash of the machine
			"-c", "full_page_writes=off", "-c", "shared_buffers=16MB", "-c", "max_connections=200",
			"-c", "max_wal_size=256MB", "-c", "logging_collector=off",
		}
		for _, setting := range settings {
			args = append(args, "-c", setting)
		}
		return program, args, err
	}
	return e
}

// postgresqlProgram finds a program of the version whose initdb is found.
func (e engine) postgresqlProgram(name string) (string, error) {
	initdb, err := e.find([]string{"initdb"}, "/usr/lib/postgresql/*/bin", "/usr/libexec/postgresql*", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin")
	return filepath.Join(filepath.Dir(initdb), name), err
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }
