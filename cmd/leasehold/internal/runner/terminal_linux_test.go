package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// screen is a terminal with a program on it.
type screen struct {
	t    *testing.T
	pty  *os.File
	cmd  *exec.Cmd
	lost string // the file that ends the lease

	mu    sync.Mutex
	text  string
	ended chan struct{}
}

// onTerminal runs a shell script as the session of a terminal of its own. In
// the script, "$RUN" runs its arguments under Run.
func onTerminal(t *testing.T, script string) *screen {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, lost: filepath.Join(t.TempDir(), "lost"), ended: make(chan struct{})}
	s.cmd = exec.Command("/bin/sh", "-c", script)
	s.cmd.Env = append(os.Environ(), "RUN="+self, hostVar+"="+s.lost)
	master, err := pty.Start(s.cmd)
	if err != nil {
		t.Fatal(err)
	}
	s.pty = closable(t, master)
	go s.read()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("on the terminal:\n%s", s.all())
		}
		s.cmd.Process.Kill()
		s.pty.Close() // hangs up what is left on the terminal
		<-s.ended
	})
	return s
}

// closable returns f, reopened such that Close ends a Read that waits.
func closable(t *testing.T, f *os.File) *os.File {
	t.Helper()
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), f.Name())
}

func (s *screen) read() {
	defer close(s.ended)
	buf := make([]byte, 4096)
	for {
		n, err := s.pty.Read(buf)
		s.mu.Lock()
		s.text += string(buf[:n])
		s.mu.Unlock()
		if err != nil {
			return // EIO: no process has the terminal open any more
		}
	}
}

func (s *screen) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text
}

// expect waits until text was shown.
func (s *screen) expect(text string) {
	s.t.Helper()
	poll(s.t, "the terminal to show "+text, func() bool { return strings.Contains(s.all(), text) })
}

// write types on the keyboard.
func (s *screen) write(keys string) {
	s.t.Helper()
	if _, err := s.pty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// lose ends the lease.
func (s *screen) lose() {
	s.t.Helper()
	if err := os.WriteFile(s.lost, nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
)

// Shows "fg" if the process's group is in the foreground of its terminal.
const place = `set -- $(ps -o pgid=,tpgid= -p $$); [ "$1" = "$2" ] && echo "fg" || echo "bg";`

func TestCommandIsInTheForeground(t *testing.T) {
	s := onTerminal(t, `"$RUN" /bin/sh -c '`+place+` read x; echo "read $x"'; echo "code $?"; `+place)
	s.expect("fg\r\n")
	s.write("hello\n")
	s.expect("read hello")
	s.expect("code 0\r\nfg") // the shell has the terminal again
}

func TestCtrlCReachesTheCommand(t *testing.T) {
	// The shell would end by Ctrl-C too, were it in the foreground: it is not.
	s := onTerminal(t, `"$RUN" /bin/sh -c 'trap "echo interrupted; exit 3" INT; echo ready; read x'; echo "code $?"`)
	s.expect("ready")
	s.write(ctrlC)
	s.expect("interrupted")
	s.expect("code 3")
	if n := strings.Count(s.all(), "interrupted"); n != 1 {
		t.Errorf("it was interrupted %d times, want once", n)
	}
}

func TestCtrlCWithInputFromElsewhere(t *testing.T) {
	s := onTerminal(t, `trap : INT; "$RUN" /bin/sh -c 'trap "echo interrupted; exit 3" INT; `+place+` while :; do sleep 1; done' </dev/null; echo "code $?"`)
	s.expect("bg")
	s.write(ctrlC)
	s.expect("interrupted")
	s.expect("code 3")
}

func TestCtrlZStopsTheJobAndItGoesOn(t *testing.T) {
	s := onTerminal(t, `set -m; "$RUN" /bin/sh -c 'echo ready; read x; echo "read $x"; exit 4'; echo "stopped $?"; fg; echo "code $?"`)
	s.expect("ready")
	s.write(ctrlZ)
	s.expect("stopped 149") // 128 + SIGTTIN
	s.write("hello\n")
	s.expect("read hello")
	s.expect("code 4")
}

// A command that is another leasehold has taken the terminal back when it stops itself.
func TestCtrlZStopsNestedRuns(t *testing.T) {
	s := onTerminal(t, `set -m; "$RUN" "$RUN" /bin/sh -c 'echo ready; read x; echo "read $x"; exit 4'; echo "stopped $?"; fg; echo "code $?"`)
	s.expect("ready")
	s.write(ctrlZ)
	s.expect("stopped 149")
	s.write("hello\n")
	s.expect("read hello")
	s.expect("code 4")
}

func TestCtrlZInNestedRunsWithoutJobControl(t *testing.T) {
	s := onTerminal(t, `exec "$RUN" "$RUN" /bin/sh -c 'echo ready; read x; echo "read $x"'`)
	s.expect("ready")
	s.write(ctrlZ)
	s.expect("^Z")
	s.write("hello\n")
	s.expect("read hello")
}

// The command starts no others meanwhile: a shell whose child is stopped between
// vfork and exec cannot be stopped itself, with or without leasehold.
func TestCtrlZWithInputFromElsewhere(t *testing.T) {
	s := onTerminal(t, `set -m; mkfifo "$`+hostVar+`.fifo"; "$RUN" /bin/sh -c 'trap "echo continued; exit 5" CONT; echo ready; read forever' <>"$`+hostVar+`.fifo"; echo "stopped $?"; read x; fg; echo "code $?"`)
	s.expect("ready")
	s.write(ctrlZ)
	s.expect("stopped 149")
	if strings.Contains(s.all(), "continued") {
		t.Error("the command went on while its job was stopped, want it stopped, too")
	}
	s.write("\n")
	s.expect("continued")
	s.expect("code 5")
}

func TestAStoppedJobThatLostItsLeaseDoesNotGoOn(t *testing.T) {
	s := onTerminal(t, `set -m; "$RUN" /bin/sh -c 'trap "echo \$((40+2))" CONT TERM; echo ready; read x; echo $((40+2))'; echo "stopped $?"; read x; fg; echo "code $?"`)
	s.expect("ready")
	s.write(ctrlZ)
	s.expect("stopped 149")
	s.lose()
	s.write("\n")
	s.expect("code 123")
	if strings.Contains(s.all(), "42") {
		t.Error("the command went on after the loss, want it killed")
	}
}

// If no shell could continue the job, Ctrl-Z does not stop it, as without leasehold.
func TestCtrlZWithoutJobControl(t *testing.T) {
	s := onTerminal(t, `exec "$RUN" /bin/sh -c 'echo ready; read x; echo "read $x"'`)
	s.expect("ready")
	s.write(ctrlZ)
	s.expect("^Z")
	s.write("hello\n")
	s.expect("read hello")
}

func TestAPipelineMayReadTheTerminal(t *testing.T) {
	s := onTerminal(t, `set -m; echo piped | "$RUN" /bin/sh -c 'read x; echo "first $x"; read y </dev/tty; echo "second $y"'; echo "code $?"`)
	s.expect("first piped")
	s.write("typed\n")
	s.expect("second typed")
	s.expect("code 0")
}

// Two commands of one pipeline may read the terminal, whichever of them is first.
func TestTwoCommandsOfAPipelineReadTheTerminal(t *testing.T) {
	for range 3 {
		s := onTerminal(t, `set -m; "$RUN" /bin/sh -c 'echo ready >/dev/tty; head -n1 /dev/tty' | "$RUN" /bin/sh -c 'echo ready >/dev/tty; head -n1 /dev/tty; cat'; echo "code $?"`)
		poll(t, "both to begin", func() bool { return strings.Count(s.all(), "ready\r\n") == 2 })
		s.write("one\n")
		poll(t, "one to be read", func() bool { return strings.Count(s.all(), "one\r\n") >= 1 })
		s.write("two\n")
		s.expect("code 0")
		if all := s.all(); strings.Count(all, "one\r\n") != 2 || strings.Count(all, "two\r\n") != 2 {
			t.Errorf("the terminal shows %q, want each line as it was typed, and as it was read", all)
		}
	}
}

func TestABackgroundJobIsStoppedWhenItReads(t *testing.T) {
	s := onTerminal(t, `set -m; "$RUN" /bin/sh -c '`+place+` read x; echo "read $x"; exit 6' & until jobs >"$`+hostVar+`.jobs"; grep -q Stopped "$`+hostVar+`.jobs"; do sleep 0.01; done; echo "it stopped"; fg; echo "code $?"`)
	s.expect("bg")
	s.expect("it stopped")
	s.write("hello\n")
	s.expect("read hello")
	s.expect("code 6")
}

func TestTerminalIsRestoredAfterAKill(t *testing.T) {
	s := onTerminal(t, `"$RUN" /bin/sh -c 'trap "" TERM; stty -echo -icanon; echo ready; while :; do sleep 1; done'; echo "code $?"; read x`)
	s.expect("ready")
	s.lose()
	s.expect("code 123")
	s.isTidy()
}

// The terminal is restored, too, if the command is ended by SIGTERM, from leasehold or
// forwarded by it.
func TestTerminalIsRestoredAfterATerm(t *testing.T) {
	s := onTerminal(t, leftVar+`=1h "$RUN" /bin/sh -c 'stty -echo -icanon; echo ready; read x'; echo "code $?"; read x`)
	s.expect("ready")
	s.lose()
	s.expect("code 123")
	s.isTidy()
	s = onTerminal(t, `"$RUN" /bin/sh -c 'stty -echo -icanon; echo ready $PPID.; read x'; echo "code $?"; read x`)
	s.expect(".\r\n")
	_, rest, _ := strings.Cut(s.all(), "ready ")
	if err := syscall.Kill(atoi(t, rest[:strings.IndexByte(rest, '.')]), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.expect("code 143")
	s.isTidy()
}

// If the command ends by itself, the terminal is left as the command set it, as by stty.
func TestCommandMayChangeTheTerminal(t *testing.T) {
	s := onTerminal(t, `"$RUN" stty -echo -icanon; echo "code $?"; read x`)
	s.expect("code 0")
	if tio := s.modes(); tio.Lflag&(unix.ECHO|unix.ICANON) != 0 {
		t.Errorf("the terminal's modes are %#x, want those of the command, without ECHO and ICANON", tio.Lflag)
	}
}

func (s *screen) isTidy() {
	s.t.Helper()
	if tio := s.modes(); tio.Lflag&unix.ECHO == 0 || tio.Lflag&unix.ICANON == 0 {
		s.t.Errorf("the terminal's modes are %#x, want those of before, with ECHO and ICANON", tio.Lflag)
	}
}

func (s *screen) modes() *unix.Termios {
	s.t.Helper()
	conn, err := s.pty.SyscallConn()
	if err != nil {
		s.t.Fatal(err)
	}
	var tio *unix.Termios
	if cerr := conn.Control(func(fd uintptr) { tio, err = unix.IoctlGetTermios(int(fd), unix.TCGETS) }); cerr != nil || err != nil {
		s.t.Fatal(cerr, err)
	}
	return tio
}

func TestStopsOfTheCommandAloneDoNotStopTheJob(t *testing.T) {
	s := onTerminal(t, `"$RUN" /bin/sh -c 'echo "pid $$."; kill -STOP $$; echo continued; exit 7'; echo "code $?"`)
	s.expect(".\r\n")
	_, rest, _ := strings.Cut(s.all(), "pid ")
	pid := atoi(t, rest[:strings.IndexByte(rest, '.')])
	waitStopped(t, pid)
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.expect("continued")
	s.expect("code 7")
}
