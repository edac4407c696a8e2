// Package localredis starts real redis-server processes, each on a free loopback port and in a
// directory of its own. It kills, freezes and restarts them, and ends them. On Linux the kernel
// kills a server when the process that started it dies, in whatever way.
package localredis

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
)

// patience bounds every wait for a server. It is only used up if something is
// broken.
const patience = 30 * time.Second

// Options say what to launch. The zero value is ready to use.
type Options struct {
	// Dir is the server's working directory, which must exist. If it is empty,
	// Launch makes one and Close removes it.
	Dir string
	// Args are server settings, such as "--requirepass", "x"; later ones win
	// over the defaults (loopback only, no persistence).
	Args []string
	// Sentinel, if not nil, makes the server a sentinel, which watches servers
	// and keeps no data. It has lines for the sentinel's configuration file, such
	// as "sentinel monitor mymaster 127.0.0.1 6379 1". Args are then ignored.
	Sentinel []string
	// Cluster makes the server a member of a cluster, at first alone and without
	// slots.
	Cluster bool
	// Trouble, if not nil, is called with every error that a method returns,
	// except Do.
	Trouble func(error)
}

// Server is one redis-server process. Its address and directory stay the same
// over restarts, also while it is down. All methods are safe for concurrent use.
type Server struct {
	setup
	trouble func(error) // may be nil

	mu     sync.Mutex
	proc   *child.Process // nil while down
	closed bool
}

// Launch starts a server and waits until it answers. The caller must call Close.
func Launch(o Options) (*Server, error) {
	binary, err := findBinary()
	if err != nil {
		return nil, err
	}
	s := &Server{setup: setup{binary: binary, dir: o.Dir, args: o.Args, sentinel: o.Sentinel, password: setting(o.Args, "--requirepass")}, trouble: o.Trouble}
	if s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "leasehold-redis-"); err != nil {
			return nil, err
		}
		s.ownDir = true
	}
	for range 20 {
		if err = s.pickPorts(o.Cluster); err != nil {
			break
		}
		if err = s.writeSentinel(); err != nil {
			break
		}
		err = s.start(false)
		if !errors.Is(err, errPortTaken) {
			break
		}
		s.releasePorts() // another process has taken one: try others
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// setting returns the value of a setting in args.
func setting(args []string, name string) string {
	for i := len(args) - 2; i >= 0; i-- {
		if args[i] == name {
			return args[i+1]
		}
	}
	return ""
}

// Addr returns the server's address, "127.0.0.1:port".
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Log returns what the server has logged, over all restarts, or the end of it if
// it is long.
func (s *Server) Log() string { return s.log().end() }

// URL returns the server's address as a redis:// URL, with the password if it has
// one.
func (s *Server) URL() string {
	u := url.URL{Scheme: "redis", Host: s.Addr()}
	if s.password != "" {
		u.User = url.UserPassword("", s.password)
	}
	return u.String()
}

// PID returns the process id of the running server, or 0 while it is down.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return 0
	}
	return s.proc.PID()
}

// Kill kills the server with SIGKILL and returns when its process has ended and
// its port refuses connections. It does nothing if the server is down.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killLocked()
}

func (s *Server) killLocked() {
	if s.proc != nil {
		s.proc.Kill()
		s.proc = nil
	}
}

// Stop asks the server to end, so that it saves its data if configured to, and
// returns when it has. It first thaws a frozen server.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return nil
	}
	err := s.proc.End()
	s.proc = nil
	return s.failed("stop", err)
}

// Restart kills the server, if it is up, and starts it again with the same
// address, directory and settings. It is empty afterwards unless its settings
// make it keep data ("--appendonly", "yes", "--appendfsync", "always").
func (s *Server) Restart() error { return s.startAgain(false) }

// RestartLoading is like Restart, but returns as soon as the server answers at
// all, even that it is still loading its data.
func (s *Server) RestartLoading() error { return s.startAgain(true) }

func (s *Server) startAgain(loading bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.failed("restart", errors.New("it was closed"))
	}
	s.killLocked()
	var err error
	for end := time.Now().Add(patience); ; {
		// The port is this server's, but another process may have got hold of
		// it for a moment while looking for a free one.
		err = s.startLocked(loading)
		if !errors.Is(err, errPortTaken) || time.Now().After(end) {
			return s.failed("restart", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Freeze stops the server (SIGSTOP). Connections stay open, and the kernel
// accepts new ones, but nothing is answered. Freeze returns when the server has
// stopped.
func (s *Server) Freeze() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return s.failed("freeze", ErrDown)
	}
	return s.failed("freeze", s.proc.Freeze())
}

// Thaw continues a frozen server (SIGCONT).
func (s *Server) Thaw() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		return s.failed("thaw", ErrDown)
	}
	return s.failed("thaw", s.proc.Thaw())
}

// Close kills the server and frees its resources. The server cannot be started again. A second
// call does nothing.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killLocked()
	if s.closed {
		return
	}
	s.closed = true
	s.releasePorts()
	if s.ownDir {
		os.RemoveAll(s.dir)
	}
}

// ErrDown means that the server is not running.
var ErrDown = errors.New("it is not running")

// failed adds the server's address to err, and calls Options.Trouble.
func (s *Server) failed(what string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("localredis: %s the server at %s: %w", what, s.Addr(), err)
	if s.trouble != nil {
		s.trouble(err)
	}
	return err
}
