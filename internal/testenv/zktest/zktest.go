// Package zktest starts real ZooKeeper servers, for tests and for the stories of the lab,
// alone or as an ensemble, on free loopback ports and with data in directories of their
// own, and ends them. It brings no driver.
//
// A server is a Java process with a small heap. It takes a second or two to start, so a
// test binary starts few of them. On Linux the kernel ends a server when the process
// that started it dies, in whatever way.
package zktest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/port"
)

// patience bounds every wait for a server. It is only used up if something is broken.
const patience = 90 * time.Second

// Options configure servers.
type Options struct {
	// Tick is the servers' unit of time. Zero means a second.
	Tick time.Duration
	// Settings are further lines of the configuration, such as "maxSessionTimeout=60000".
	Settings []string
	// Properties are system properties of Java, such as "readonlymode.enabled=true".
	Properties []string
}

// Server is one ZooKeeper server.
type Server struct {
	// Addr is "127.0.0.1:port", for clients.
	Addr string

	id    int
	dir   string
	ports []int
	java  []string // the command
	proc  *child.Process
}

// ErrNotInstalled means that there is no ZooKeeper, or no Java. Its text says what to
// install.
var ErrNotInstalled = errors.New(`ZooKeeper or Java is not installed, and real ones are needed. Install them and run again:
	Debian, Ubuntu   sudo apt-get install -y zookeeper default-jre-headless`)

// jars are the places where packages put the program.
var jars = []string{
	"/usr/share/java/zookeeper.jar", // Debian, Ubuntu; it names the others it needs
}

// Main is the class of a server.
const Main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

// Program returns the files of Java and of ZooKeeper. The error is ErrNotInstalled.
func Program() (java, jar string, err error) {
	if java, err = exec.LookPath("java"); err != nil {
		return "", "", ErrNotInstalled
	}
	for _, jar := range jars {
		if _, err := os.Stat(jar); err == nil {
			return java, jar, nil
		}
	}
	return "", "", ErrNotInstalled
}

// command returns the beginning of the command of a server.
func command(o Options) ([]string, error) {
	java, jar, err := Program()
	if err != nil {
		return nil, err
	}
	c := []string{java,
		"-Xms16m", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss256k", "-XX:MaxMetaspaceSize=64m", "-XX:-UsePerfData",
		"-Dzookeeper.forceSync=no", // no data has to survive a crash of the machine
		"-Dzookeeper.preAllocSize=512",
		"-Dzookeeper.admin.enableServer=false",
		"-Djava.net.preferIPv4Stack=true",
	}
	for _, p := range o.Properties {
		c = append(c, "-D"+p)
	}
	return append(c, "-cp", jar, Main), nil
}

// Launch starts a standalone server, and waits until it serves. The caller must
// call Close.
func Launch(o Options) (*Server, error) {
	var err error
	for range 10 {
		var s *Server
		if s, err = prepare(o, 1); err != nil {
			return nil, err
		}
		if err = s.configure(o, nil); err == nil {
			err = s.start()
		}
		if err == nil {
			if err = s.await(); err == nil {
				return s, nil
			}
		}
		taken := s.taken()
		s.Close()
		if !taken {
			break
		}
	}
	return nil, fmt.Errorf("zktest: %w", err)
}

// prepare makes the directory of a server and picks its ports.
func prepare(o Options, id int) (*Server, error) {
	java, err := command(o)
	if err != nil {
		return nil, fmt.Errorf("zktest: %w", err)
	}
	dir, err := os.MkdirTemp("", "zktest-")
	if err != nil {
		return nil, err
	}
	s := &Server{id: id, dir: dir, java: append(java, filepath.Join(dir, "zoo.cfg"))}
	for range 3 { // for clients, for the quorum, for elections
		p, err := port.Pick()
		if err != nil {
			s.Close()
			return nil, err
		}
		s.ports = append(s.ports, p)
	}
	s.Addr = fmt.Sprintf("127.0.0.1:%d", s.ports[0])
	return s, nil
}

// configure writes the configuration, with the lines of its ensemble.
func (s *Server) configure(o Options, members []string) error {
	if o.Tick == 0 {
		o.Tick = time.Second
	}
	lines := []string{
		fmt.Sprintf("tickTime=%d", o.Tick.Milliseconds()),
		"dataDir=" + filepath.Join(s.dir, "data"),
		fmt.Sprintf("clientPort=%d", s.ports[0]), "clientPortAddress=127.0.0.1",
		"maxClientCnxns=0", "initLimit=20", "syncLimit=5", "4lw.commands.whitelist=srvr,conf",
	}
	lines = append(append(lines, members...), o.Settings...)
	if err := os.MkdirAll(filepath.Join(s.dir, "data"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "data", "myid"), fmt.Appendln(nil, s.id), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, "zoo.cfg"), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

func (s *Server) start() error {
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own copy
	cmd := exec.Command(s.java[0], s.java[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	s.proc, err = child.Start(cmd)
	return err
}

// await waits until the server serves.
func (s *Server) await() error {
	var last error
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if _, last = s.Mode(); last == nil {
			return nil
		}
		select {
		case <-s.proc.Done():
			return fmt.Errorf("the server ended at once (%v):\n%s", s.proc.Err(), s.Log())
		case <-time.After(25 * time.Millisecond):
		}
	}
	return fmt.Errorf("the server does not serve after %v (%w):\n%s", patience, last, s.Log())
}

// taken reports whether the server failed because another process took one of its ports.
func (s *Server) taken() bool {
	log := s.Log()
	return strings.Contains(log, "already in use") || strings.Contains(log, "BindException")
}

// Kill ends the server at once, as a crash does. It keeps its files.
func (s *Server) Kill() { s.proc.Kill() }

// Restart starts a server that was killed again, with the files and the address that it
// had, and waits until it serves.
func (s *Server) Restart() error {
	if err := s.Start(); err != nil {
		return err
	}
	if err := s.await(); err != nil {
		return fmt.Errorf("zktest: restart: %w", err)
	}
	return nil
}

// Start is Restart for a member of an ensemble that cannot serve alone: it does not wait.
func (s *Server) Start() error {
	if err := s.start(); err != nil {
		return fmt.Errorf("zktest: start: %w", err)
	}
	return nil
}

// Freeze stops the process and returns when it has stopped.
func (s *Server) Freeze() error { return s.proc.Freeze() }

// Thaw continues a frozen process.
func (s *Server) Thaw() error { return s.proc.Thaw() }

// PID returns the number of the server's process.
func (s *Server) PID() int { return s.proc.PID() }

// Log returns the end of what the server has printed.
func (s *Server) Log() string {
	b, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	const most = 16 << 10
	return strings.TrimSpace(string(b[max(0, len(b)-most):]))
}

func (s *Server) logPath() string { return filepath.Join(s.dir, "log") }

// Close ends the server and removes its files. A second call does nothing.
func (s *Server) Close() {
	if s.proc != nil {
		s.proc.Kill()
	}
	for _, p := range s.ports {
		port.Release(p)
	}
	s.ports = nil
	os.RemoveAll(s.dir)
}
