// Package servers starts the servers of a run, each on a free loopback port and
// in a directory of its own, and ends them.
package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// Server is a running etcd, ZooKeeper or PostgreSQL.
type Server struct {
	Addr    string
	Version string
	PID     int

	dir      string
	proc     *exec.Cmd
	done     chan struct{}
	requests func(context.Context) (uint64, error)
	url      func(addr string) string
	close    func() // if the server was not started by start
}

// URL returns what clients need to connect through an address: a URL if the server has
// one, or else the address.
func (s *Server) URL(addr string) string {
	if s.url == nil {
		return addr
	}
	return s.url(addr)
}

// patience bounds the start of a server.
const patience = 60 * time.Second

// start runs a command that writes into dir, and waits until ready says so.
func start(ctx context.Context, dir string, command []string, ready func(context.Context) error) (*Server, error) {
	s := &Server{dir: dir, proc: exec.Command(command[0], command[1:]...), done: make(chan struct{})}
	log := filepath.Join(dir, "log")
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s.proc.Dir, s.proc.Stdout, s.proc.Stderr, s.proc.SysProcAttr = dir, f, f, dieWithUs()
	started := make(chan error)
	go func() {
		// Linux ends a child together with the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.proc.Start()
		started <- err
		if err == nil {
			s.proc.Wait()
			close(s.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	s.PID = s.proc.Process.Pid
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return s, nil
		}
		select {
		case <-s.done:
			err = errors.New("it ended at once")
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
			continue
		}
		text, _ := os.ReadFile(log)
		s.Close()
		return nil, fmt.Errorf("%s does not start: %w; its log:\n%s", command[0], err, text[max(0, len(text)-4000):])
	}
}

// Close kills the server and removes its directory.
func (s *Server) Close() {
	if s.close != nil {
		s.close()
		return
	}
	s.proc.Process.Kill()
	<-s.done
	os.RemoveAll(s.dir)
}

// MissingError says that a server is not installed, and what to install.
type MissingError struct{ Program, Install string }

func (e *MissingError) Error() string {
	return e.Program + " is not installed: " + e.Install
}
