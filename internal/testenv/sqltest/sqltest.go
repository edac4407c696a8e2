// Package sqltest starts real PostgreSQL and MariaDB servers for tests, and MySQL
// servers if they are asked for (see MySQL), each on a free loopback port, with an
// empty database in a directory of its own, and ends them. It is test equipment:
// only test files import it. It brings no driver.
//
// Starting one takes seconds, so a test binary starts one of each at most, in
// TestMain. On Linux the kernel ends a server when the process that started it
// dies, in whatever way.
package sqltest

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/port"
)

// patience bounds every wait for a server. It is only used up if something is
// broken.
const patience = 60 * time.Second

// Server is a running database server.
type Server struct {
	// Addr is "127.0.0.1:port".
	Addr string
	// User has all rights, and needs the Password.
	User, Password string
	// Database is empty.
	Database string

	dir  string
	proc *process  // nil before it is started
	end  os.Signal // the signal to shut down
	// again restarts the server after Kill.
	again func() (process, error)
}

// engine says how to run one kind of server.
type engine struct {
	name    string
	install string   // how people install it
	account []string // the accounts that it may run as if the tests run as root, in order of preference
	// prepare creates the files of a database in s.dir.
	prepare func(s *Server, run func(program string, args ...string) error) error
	// command returns the program and its arguments for a server on that port.
	command func(s *Server, port int) (string, []string, error)
	ready   string // what it prints when it listens
	taken   string // what it prints when the port is in use
	end     os.Signal
}

// launch starts a server and waits until it listens.
func (e engine) launch() (*Server, error) {
	dir, err := os.MkdirTemp("", "sqltest-")
	if err != nil {
		return nil, err
	}
	s := &Server{User: "tester", Password: rand.Text(), Database: "guarded", dir: dir}
	if err := e.start(s); err != nil {
		s.Close()
		return nil, fmt.Errorf("sqltest: %s: %w", e.name, err)
	}
	return s, nil
}

func (e engine) start(s *Server) error {
	as, err := account(e.account)
	if err != nil {
		return err
	}
	if err := as.own(s.dir); err != nil {
		return err
	}
	err = e.prepare(s, func(program string, args ...string) error {
		p, err := as.run(program, args, s.dir, filepath.Join(s.dir, "prepare.log"))
		if err != nil {
			return err
		}
		select {
		case <-p.Done():
		case <-time.After(patience):
			p.Kill()
			return fmt.Errorf("%s took more than %v:\n%s", program, patience, p.log())
		}
		if err := p.Err(); err != nil {
			return fmt.Errorf("%s: %w\n%s", program, err, p.log())
		}
		return nil
	})
	if err != nil {
		return err
	}
	for try := range 20 {
		free, err := port.Pick()
		if err != nil {
			return err
		}
		program, args, err := e.command(s, free)
		if err != nil {
			return err
		}
		p, err := as.run(program, args, s.dir, filepath.Join(s.dir, fmt.Sprintf("server-%d.log", try)))
		if err != nil {
			return err
		}
		s.proc, s.end, s.Addr = &p, e.end, fmt.Sprintf("127.0.0.1:%d", free)
		s.again = func() (process, error) {
			p, err := as.run(program, args, s.dir, filepath.Join(s.dir, "again-"+rand.Text()+".log"))
			if err != nil {
				return p, err
			}
			return p, e.await(p)
		}
		err = e.await(p)
		if err == nil || !strings.Contains(p.log(), e.taken) {
			return err
		}
	}
	return fmt.Errorf("found no port that stayed free")
}

// await waits until the server says that it listens. It reads that from a file that only
// this server writes, so that another server on the port is not mistaken for it.
func (e engine) await(p process) error {
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if strings.Contains(p.log(), e.ready) {
			return nil
		}
		select {
		case <-p.Done():
			return fmt.Errorf("the server ended at once (%v):\n%s", p.Err(), p.log())
		case <-poll.C:
		}
	}
	p.Kill()
	return fmt.Errorf("the server does not listen after %v:\n%s", patience, p.log())
}

// Kill ends the server at once, as a crash does. It keeps its files.
func (s *Server) Kill() { s.proc.Kill() }

// Restart starts a server that was killed again, with the files and the address that
// it had, and waits until it listens.
func (s *Server) Restart() error {
	// The child processes of a killed server end a moment after it.
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var p process
		if p, err = s.again(); err == nil {
			s.proc = &p
			return nil
		}
	}
	return fmt.Errorf("sqltest: restart: %w", err)
}

// PID returns the number of the server's process.
func (s *Server) PID() int { return s.proc.PID() }

// Log returns what the server has logged.
func (s *Server) Log() string {
	if s.proc == nil {
		return ""
	}
	return s.proc.log()
}

// Close ends the server and removes its files. A second call does nothing.
func (s *Server) Close() {
	if s.proc != nil {
		s.proc.end(s.end)
	}
	os.RemoveAll(s.dir)
}
