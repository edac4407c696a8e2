//go:build unix

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
)

// patience bounds waits for what takes milliseconds on a machine that is not busy.
const patience = 60 * time.Second

// binary is the command: this test binary, by another name. With the race detector it has it, too.
var binary string

// roleVar makes the test binary play one of roles, as a command to be run.
const roleVar = "LEASEHOLD_CLI_TEST_ROLE"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "leasehold" {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if role := os.Getenv(roleVar); role != "" {
		if err := roles[role](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, role+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	child.DefaultSignals()
	os.Exit(withBinary(m.Run))
}

func withBinary(run func() int) int {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// Beside the test binary, since a link cannot leave its file system. A link that is no hard
	// one would lose its name when the command starts itself again.
	dir, err := os.MkdirTemp(filepath.Dir(self), "leasehold-cli-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "leasehold")
	if err := os.Link(self, binary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}

// A tester is a test, or a script.
type tester interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Fatal(args ...any)
}

// site is a user's home with a lock folder of its own.
type site struct {
	t      tester
	binary string // the command
	home   string
	dir    string // where commands run; empty: where the test does
	env    []string
}

func newSite(t *testing.T, env ...string) *site {
	t.Helper()
	s := &site{t: t, binary: binary, home: t.TempDir()}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "LEASEHOLD_") && !strings.HasPrefix(kv, "XDG_") {
			s.env = append(s.env, kv)
		}
	}
	// A program with the race detector sleeps for a second when it ends.
	s.env = append(s.env, "HOME="+s.home, "GORACE=atexit_sleep_ms=0")
	s.env = append(s.env, env...)
	return s
}

// proc is a process under test and what it has written.
type proc struct {
	t        tester
	cmd      *exec.Cmd
	in       io.WriteCloser
	out, err output
	waited   bool
}

// output collects what a process writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// start starts the command.
func (s *site) start(args ...string) *proc { return s.exec(s.binary, args...) }

// plain makes the site use the command of scripts, for many short runs.
func (s *site) plain() *site {
	s.t.Helper()
	path, err := command()
	if err != nil {
		s.t.Fatal(err)
	}
	s.binary = path
	return s
}

func (s *site) exec(path string, args ...string) *proc {
	s.t.Helper()
	p := &proc{t: s.t, cmd: exec.Command(path, args...)}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = s.dir, s.env, &p.out, &p.err
	in, err := p.cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	p.in = in
	// Processes that a command leaves in the background keep its output open.
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if !p.waited {
			p.cmd.Process.Kill()
			p.cmd.Wait()
		}
	})
	return p
}

// end waits for the process and returns its exit code.
func (p *proc) end() int {
	p.t.Helper()
	timer := time.AfterFunc(patience, func() {
		p.cmd.Process.Signal(syscall.SIGABRT) // and show where it hangs
		time.AfterFunc(time.Second, func() { p.cmd.Process.Kill() })
	})
	defer timer.Stop()
	err := p.cmd.Wait()
	p.waited = true
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		p.t.Fatalf("%v: %v", p.cmd.Args, err)
	}
	return codeFor(p.cmd.ProcessState)
}

// codeFor returns how shells report the end of a process.
func codeFor(state *os.ProcessState) int {
	if ws := state.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}

// wants waits for the end of the process, and fails the test if its exit code is another.
func (p *proc) wants(code int) {
	p.t.Helper()
	if got := p.end(); got != code {
		p.t.Errorf("%q: exit code %d, want %d\nstdout: %s\nstderr: %s", p.cmd.Args[1:], got, code, p.out.String(), p.err.String())
	}
}

// says waits until the process has written text to o. A line about waiting says for how long
// from its second second on, so tests ask for what follows that: ` for "x"`.
func (p *proc) says(o *output, text string) {
	p.t.Helper()
	poll(p.t, func() string {
		if strings.Contains(o.String(), text) {
			return ""
		}
		return fmt.Sprintf("%q to say %q; stdout: %s; stderr: %s", p.cmd.Args[1:], text, p.out.String(), p.err.String())
	})
}

// signal sends sig to the process.
func (p *proc) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// freeze stops the process, and returns when nothing of it runs.
func (p *proc) freeze() {
	p.t.Helper()
	if err := child.Freeze(p.cmd.Process); err != nil {
		p.t.Fatal(err)
	}
}

// poll waits until missing returns "". Else it returns what is missing.
func poll(t tester, missing func() string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		what := missing()
		if what == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// run runs the command to its end, and fails the test if its exit code is another.
func (s *site) run(code int, args ...string) *proc {
	s.t.Helper()
	p := s.start(args...)
	p.in.Close()
	p.wants(code)
	return p
}

// hold starts a command under the lock and returns when it runs. It ends when
// its input does.
func (s *site) hold(name string, flags ...string) *proc {
	s.t.Helper()
	p := s.start(append(append([]string{"run", name}, flags...), "--", "/bin/sh", "-c", "echo held; read x; exit 0")...)
	p.says(&p.out, "held\n")
	return p
}

// let ends the command that hold has started.
func (p *proc) let() {
	p.t.Helper()
	p.in.Close()
	p.wants(0)
}
