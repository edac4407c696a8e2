//go:build unix

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner"
)

// terminal is a terminal with the command on it.
type terminal struct {
	t     tester
	pty   *os.File
	cmd   *exec.Cmd
	shown output
	ended chan struct{}
}

// onTerminal starts the command on a terminal.
func (s *site) onTerminal(args ...string) *terminal {
	s.t.Helper()
	return s.onTerminalExec(binary, args...)
}

// onTerminalExec starts a program on a terminal.
func (s *site) onTerminalExec(path string, args ...string) *terminal {
	s.t.Helper()
	return s.onTerminalOf(200, nil, path, args...)
}

// onTerminalOf starts a program on a terminal with so many columns, with further variables.
func (s *site) onTerminalOf(columns uint16, env []string, path string, args ...string) *terminal {
	s.t.Helper()
	m := &terminal{t: s.t, cmd: exec.Command(path, args...), ended: make(chan struct{})}
	m.cmd.Env = append(append(slices.Clone(s.env), "TERM=xterm", "NO_COLOR="), env...)
	var err error
	if m.pty, err = pty.StartWithSize(m.cmd, &pty.Winsize{Rows: 24, Cols: columns}); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		defer close(m.ended)
		buf := make([]byte, 4096)
		for {
			n, err := m.pty.Read(buf)
			m.shown.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	s.t.Cleanup(func() {
		m.cmd.Process.Kill()
		m.pty.Close()
		<-m.ended
	})
	return m
}

func (m *terminal) shows(text string) {
	m.t.Helper()
	poll(m.t, func() string {
		if strings.Contains(m.shown.String(), text) {
			return ""
		}
		return "the terminal to show " + text + ": " + m.shown.String()
	})
}

func (m *terminal) types(keys string) {
	m.t.Helper()
	if _, err := m.pty.WriteString(keys); err != nil {
		m.t.Fatal(err)
	}
}

func (m *terminal) wants(code int) {
	m.t.Helper()
	m.cmd.Wait()
	if got := codeFor(m.cmd.ProcessState); got != code {
		m.t.Errorf("exit code %d, want %d: %s", got, code, m.shown.String())
	}
}

func TestTerminalWaitingLine(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t)
	h := s.hold("x", "--purpose", "first")
	m := s.onTerminal("run", "x", "--", "echo", "mine now")
	m.shows(" for \"x\", next in the queue; held by ")
	m.shows("(first)")
	m.shows("s for \"x\"") // it is kept up to date
	behind := s.onTerminal("run", "x", "--", "true")
	behind.shows("for \"x\", 1 ahead in the queue; held by ")
	if strings.Contains(m.shown.String(), "\n") {
		t.Errorf("the terminal: %q, want one line that is overwritten, no %q", m.shown.String(), "\n")
	}
	h.let()
	m.shows("mine now")
	m.wants(0)
	behind.wants(0)
	after := m.shown.String()
	if i := strings.LastIndex(after, "\r\x1b[K"); i < 0 || strings.TrimSpace(after[i+4:]) != "mine now" {
		t.Errorf("the terminal: %q, want the line removed at the end", after)
	}
}

// A line that is cut off shows the time, the place in the queue and the holder of the
// lock, whatever the name is.
func TestTerminalWaitingLineThatIsNarrow(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t)
	name := "backups/" + strings.Repeat("very-long-", 20) + "name/of-tonight"
	h := s.hold(name, "--purpose", strings.Repeat("p", 200))
	m := s.onTerminal("run", name, "--wait", "1h", "--", "true")
	if err := pty.Setsize(m.pty, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`\r\x1b\[K(waiting [0-9]+s of 1h for "backups/.*of-tonight", next in the queue; held by [^\r]*)\r`)
	poll(t, func() string {
		if found := line.FindStringSubmatch(m.shown.String()); found != nil && len(found[1]) == 79 {
			return ""
		}
		return "a line that fits: " + m.shown.String()
	})
	m.types("\x03")
	m.wants(130)
	h.let()
}

func TestTerminalCtrlCWhileWaiting(t *testing.T) {
	s := newSite(t)
	h := s.hold("x")
	m := s.onTerminal("run", "x", "--", "echo", "ran")
	m.shows(" for \"x\"")
	m.types("\x03")
	m.wants(130)
	if strings.Contains(m.shown.String(), "ran\r") {
		t.Errorf("the command ran: %q, want no %q", m.shown.String(), "ran\r")
	}
	h.let()
}

// Ctrl-C ends a script or a loop around leasehold, whether the command reads the terminal, is
// in a pipeline or has not begun, unless the command handles it.
func TestTerminalCtrlCEndsTheScript(t *testing.T) {
	for _, shell := range []string{"bash", "dash"} {
		shell, err := exec.LookPath(shell)
		if err != nil {
			t.Log(err)
			continue
		}
		for _, script := range []string{
			`"$0" run x -- sh -c 'echo ready; read y'; echo went $((40+2))`,
			`"$0" run x -- sh -c 'echo ready; exec sleep 1000' </dev/null; echo went $((40+2))`,
			`"$0" run x -- sh -c 'echo ready; exec sleep 1000' | cat; echo went $((40+2))`,
			`"$0" run x -- sh -c 'echo ready; read z </dev/tty; exec sleep 1000' | "$0" run y -- cat; echo went $((40+2))`,
			`for i in 1 2 3; do "$0" run x -- sh -c 'echo ready; read y'; done; echo went $((40+2))`,
			`"$0" run x -- "$0" run y -- sh -c 'echo ready; read y'; echo went $((40+2))`,
			`"$0" acquire x --ttl 50s; echo ready; "$0" run x -- true; echo went $((40+2))`,
		} {
			s := newSite(t)
			m := s.onTerminalExec(shell, "-c", script, binary)
			m.shows("ready\r\n")
			if strings.Contains(script, "acquire") {
				m.shows(` for "x"`)
			}
			m.types("\x03")
			m.cmd.Wait()
			<-m.ended
			if shown := m.shown.String(); strings.Contains(shown, "went 42") || strings.Count(shown, "ready\r\n") != 1 {
				t.Errorf("%s: %s: the script went on: %q", shell, script, shown)
			}
		}
	}
	s := newSite(t)
	m := s.onTerminalExec("/bin/bash", "-c", `"$0" run x -- sh -c 'trap "exit 3" INT; echo ready; read y'; echo went $((40+2)) $?`, binary)
	m.shows("ready\r\n")
	m.types("\x03")
	m.shows("went 42 3")
	m.wants(0)
}

// Ctrl-C ends the script too if another command of the pipeline takes the terminal before the
// command that had it has died of it. That one dies with all of its group: the shell would wait.
func TestTerminalCtrlCBetweenTwoReaders(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	s.env = append(s.env, "FILE="+t.TempDir()+"/file")
	m := s.onTerminalExec(bash, "-c", `"$0" run x -- bash -c '
			trap "touch $FILE; while [ \$(ps -o tpgid= -p $$) -eq $$ ]; do :; done; trap - INT; kill -INT $$" INT
			echo ready >/dev/tty; while :; do sleep 0.01; done' |
		"$0" run y -- bash -c 'until [ -e $FILE ]; do sleep 0.01; done; head -n1 /dev/tty; true'; echo went $((40+2))`, binary)
	m.shows("ready\r\n")
	s.run(0, "run", "z", "--", bash, "-c", `until "$0" show y --exit-code >/dev/null; [ $? -eq 124 ]; do sleep 0.01; done`, binary)
	m.types("\x03")
	m.cmd.Wait()
	<-m.ended
	if shown := m.shown.String(); strings.Contains(shown, "went 42") {
		t.Errorf("the script went on: %q", shown)
	}
}

// The other commands of a pipeline are told of Ctrl-C when the command of the leader has died of it.
// Until the leader has resigned, seconds can pass: here its store does not answer.
func TestTerminalCtrlCIsToldBeforeTheLeaderResigns(t *testing.T) {
	s := newSite(t)
	server := s.start("serve", "--listen", "127.0.0.1:0", "--store", "memory:")
	m := s.onTerminalExec("/bin/sh", "-c", `"$0" elect x --store "$1" -- sh -c 'echo ready >/dev/tty; read y' </dev/tty | sh -c 'trap "echo told >/dev/tty; exit" INT; read y'`, binary, serving(server))
	m.shows("ready")
	server.freeze()
	m.types("\x03")
	m.shows("outcome unknown") // of the release
	if told, _, _ := strings.Cut(m.shown.String(), "outcome unknown"); !strings.Contains(told, "told") {
		t.Errorf("the others were not told before the leader gave up its release: %s", m.shown.String())
	}
	m.cmd.Wait()
}

// A signal that arrives while the others of a pipeline are told of Ctrl-C still ends a wait of --min-hold.
func TestSignalAfterCtrlCIsKept(t *testing.T) {
	s := newSite(t, roleVar+"=tells")
	out := s.exec("setsid", "--wait", os.Args[0])
	out.wants(0)
	if got := out.out.String(); got != "terminated\n" {
		t.Errorf("left are %q, want the signal that is not Ctrl-C", got)
	}
}

// tells tells its group of Ctrl-C after it was sent another signal, and prints which signals are left.
func tells([]string) error {
	s := listen()
	s.ch <- syscall.SIGTERM
	s.tellJob(&runner.Outcome{Signal: syscall.SIGINT, Typed: true})
	for len(s.ch) > 0 {
		fmt.Println(<-s.ch)
	}
	return nil
}

func TestTerminalBelongsToTheCommand(t *testing.T) {
	s := newSite(t)
	m := s.onTerminal("run", "x", "--", "/bin/sh", "-c", `trap 'echo interrupted; exit 3' INT; read x; echo "read $x"; read y`)
	m.types("hello\n")
	m.shows("read hello")
	m.types("\x03")
	m.shows("interrupted")
	m.wants(3)
	s.run(0, "show", "x", "--exit-code")
}

func TestTerminalQuiet(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t)
	h := s.hold("x")
	m := s.onTerminal("run", "x", "--wait", "1s", "--quiet", "--", "true")
	m.wants(124)
	<-m.ended
	if m.shown.String() != "" {
		t.Errorf("the terminal has %q, want nothing", m.shown.String())
	}
	h.let()
}
