//go:build unix

package runner

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds waits for what takes milliseconds on a machine that is not busy.
const patience = 30 * time.Second

// job is a command under Run, in this process.
type job struct {
	t       *testing.T
	lease   *lease
	signals chan os.Signal
	in      *os.File      // the command's standard input
	out     *bufio.Reader // and its output
	outFile *os.File
	result  chan Outcome

	mu      sync.Mutex
	reports []string
}

// sh runs a shell script with Run.
func sh(t *testing.T, b Budget, script string) *job {
	return begin(t, b, "/bin/sh", "-c", script)
}

func begin(t *testing.T, b Budget, args ...string) *job {
	t.Helper()
	stdin, in := pipe(t)
	out, stdout := pipe(t)
	j := &job{t: t, lease: newLease(), signals: make(chan os.Signal, 8), in: in, out: bufio.NewReader(out), outFile: out, result: make(chan Outcome, 1)}
	go func() {
		o := Run(Command{Path: args[0], Args: args, Env: os.Environ(), Stdin: stdin, Stdout: stdout, Stderr: os.Stderr},
			Config{Lease: j.lease, Budget: b, Signals: j.signals, Report: j.report})
		stdin.Close()
		stdout.Close()
		j.result <- o
	}()
	t.Cleanup(func() { j.lease.lose(errors.New("the test is over"), 0) })
	return j
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func (j *job) report(s string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.reports = append(j.reports, s)
}

func (j *job) said() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.reports, "\n")
}

// line returns the next line of the command's output.
func (j *job) line() string {
	j.t.Helper()
	j.outFile.SetReadDeadline(time.Now().Add(patience))
	s, err := j.out.ReadString('\n')
	if err != nil {
		j.t.Fatalf("waiting for a line of output: %v (%q)", err, s)
	}
	return strings.TrimSuffix(s, "\n")
}

func (j *job) expect(want string) {
	j.t.Helper()
	if got := j.line(); got != want {
		j.t.Fatalf("the command says %q, want %q", got, want)
	}
}

// pid reads a line of output that is a number.
func (j *job) pid() int {
	j.t.Helper()
	return atoi(j.t, j.line())
}

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// end waits for Run to return.
func (j *job) end() Outcome {
	j.t.Helper()
	select {
	case o := <-j.result:
		return o
	case <-time.After(patience):
		j.t.Fatalf("Run has not returned after %v", patience)
		panic("unreachable")
	}
}

// nobodyWrites fails the test unless all processes that had the command's output open have
// ended.
func (j *job) nobodyWrites() {
	j.t.Helper()
	j.outFile.SetReadDeadline(time.Now().Add(patience))
	if rest, err := io.ReadAll(j.out); err != nil {
		j.t.Errorf("a process of the command is left: %v (%q), want the end of its output", err, rest)
	}
}

var ample = Budget{Grace: patience, Slack: time.Second}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		script string
		code   int
		sig    syscall.Signal
	}{
		{"exit 0", 0, 0},
		{"exit 7", 7, 0},
		{"exit 255", 255, 0},
		{"kill -TERM $$", 128 + 15, syscall.SIGTERM},
		{"kill -KILL $$", 128 + 9, syscall.SIGKILL},
		{"kill -USR1 $$", 128 + 10, syscall.SIGUSR1},
	} {
		o := sh(t, ample, c.script).end()
		if o.Code != c.code || o.Signal != c.sig || o.Err != nil {
			t.Errorf("%s: %+v, want code %d, signal %v", c.script, o, c.code, c.sig)
		}
	}
}

func TestCommandsThatDoNotStart(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		path, says string
		code       int
	}{
		{write("noformat", "echo hello\n", 0o755), "#!/bin/sh", CodeNotExecutable},
		{write("nointerpreter", "#!/does/not/exist\n", 0o755), "no such file", CodeNotFound},
		{filepath.Join(dir, "vanished"), "no such file", CodeNotFound},
	} {
		o := begin(t, ample, c.path).end()
		var start *StartError
		if o.Code != c.code || !errors.As(o.Err, &start) || !strings.Contains(o.Err.Error(), c.says) || !strings.Contains(o.Err.Error(), c.path) {
			t.Errorf("%s: %+v, want code %d and text with %q", c.path, o, c.code, c.says)
		}
	}
}

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"plain": 0o644, "tool": 0o755} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	if path, err := Resolve("tool"); err != nil || path != filepath.Join(dir, "tool") {
		t.Errorf("tool: %q, %v, want %q", path, err, filepath.Join(dir, "tool"))
	}
	for name, code := range map[string]int{
		"absent": CodeNotFound, "./absent": CodeNotFound, "": CodeNotFound,
		"plain": CodeNotExecutable, dir: CodeNotExecutable, filepath.Join(dir, "plain"): CodeNotExecutable,
	} {
		_, err := Resolve(name)
		var start *StartError
		if !errors.As(err, &start) || start.Code != code {
			t.Errorf("%q: %v, want code %d", name, err, code)
		}
	}
}

// A signal is for the command: what it has started need not handle it.
func TestSignalsReachTheCommandAlone(t *testing.T) {
	j := sh(t, ample, `exec 3<&0; (read x; echo "helper $x") <&3 & trap 'echo parent' USR1; echo ready; wait; wait; exit 5`)
	j.expect("ready")
	j.signals <- syscall.SIGUSR1
	j.expect("parent")
	if _, err := j.in.WriteString("lives\n"); err != nil {
		t.Fatal(err)
	}
	j.expect("helper lives")
	if o := j.end(); o.Code != 5 || o.Err != nil {
		t.Errorf("%+v, want code %d and no error", o, 5)
	}
}

// If the command dies of a signal that was passed on to it, the processes that it has started
// get the signal, too: nobody is left who could tell them.
func TestASignalThatEndsTheCommandReachesItsGroup(t *testing.T) {
	j := sh(t, ample, `exec 2>/dev/null
		(trap 'echo child; exit 0' TERM; echo ready; while :; do sleep 0.1; done) & echo ready; wait`)
	j.expect("ready")
	j.expect("ready")
	j.signals <- syscall.SIGTERM
	j.expect("child")
	if o := j.end(); o.Signal != syscall.SIGTERM || o.Err != nil || o.Typed {
		t.Errorf("%+v, want signal %v and no error, and nothing typed", o, syscall.SIGTERM)
	}
}

func TestLossKillsACommandThatLeftItsGroup(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(roleVar, "leaver")
	j := begin(t, Budget{Grace: 50 * time.Millisecond, Slack: time.Second}, self)
	j.expect("ready <nil>")
	j.signals <- syscall.SIGHUP // reaches the command in that group, too, and ends it
	if o := j.end(); o.Signal != syscall.SIGHUP {
		t.Errorf("%+v, want signal %v", o, syscall.SIGHUP)
	}
	j = begin(t, Budget{Grace: 50 * time.Millisecond, Slack: time.Second}, self)
	j.expect("ready <nil>")
	j.lease.lose(errLost, time.Hour)
	if o := j.end(); o.Code != CodeLost || o.Signal != syscall.SIGKILL {
		t.Errorf("%+v, want code %d and signal %v", o, CodeLost, syscall.SIGKILL)
	}
	j.nobodyWrites()
}

// A command that may not be signalled is reported as such, and not as killed.
func TestACommandThatCannotBeKilled(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a program that becomes root")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	climber := filepath.Join(dir, "climber")
	if out, err := exec.Command("/bin/sh", "-c", `cp "$1" "$2" && chmod 4755 "$2" && chmod 755 "$3" "$3/.."`, "sh", self, climber, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	host := filepath.Join(dir, "host")
	if out, err := exec.Command("cp", self, host).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	stdin, in := pipe(t)
	out, stdout := pipe(t)
	lost := filepath.Join(dir, "lost")
	h := exec.Command(host, "/bin/sh", "-c", roleVar+`=climber exec "$0"`, climber)
	h.Env = append(os.Environ(), hostVar+"="+lost, leftVar+"=200ms")
	h.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	h.Stdin, h.Stdout, h.Stderr = stdin, stdout, stdout
	h.Dir = "/"
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	stdout.Close()
	stdin.Close()
	out.SetReadDeadline(time.Now().Add(patience))
	r := bufio.NewReader(out)
	if s, err := r.ReadString('\n'); err != nil || s != "ready <nil>\n" {
		t.Fatalf("%q, %v, want \"ready <nil>\"", s, err)
	}
	if err := os.WriteFile(lost, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	said := ""
	for !strings.Contains(said, "cannot be killed") {
		s, err := r.ReadString('\n')
		if err != nil || strings.Contains(s, "was killed") {
			t.Fatalf("%q%q, %v", said, s, err)
		}
		said += s
	}
	if !strings.Contains(said, "operation not permitted") || !strings.Contains(said, "cannot be told to stop") {
		t.Errorf("reported: %s, want text with %q and %q", said, "operation not permitted", "cannot be told to stop")
	}
	in.Close() // it ends by itself
	h.Wait()
	if code := h.ProcessState.ExitCode(); code != CodeLost {
		t.Errorf("exit code %d, want exit code %d", code, CodeLost)
	}
}

// jobWithoutTerminal is a host that runs script as a job of a session that has no
// terminal.
func jobWithoutTerminal(t *testing.T, script string) (j *sessionJob) {
	t.Helper()
	out, stdout := pipe(t)
	stdin, in := pipe(t)
	j = &sessionJob{t: t, in: in, file: out, out: bufio.NewReader(out)}
	h := hostCommand(t, "/bin/sh", "-c", script)
	h.Env = append(h.Env, roleVar+"=session")
	h.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	h.Stdin, h.Stdout = stdin, stdout
	for _, kv := range h.Env {
		if path, ok := strings.CutPrefix(kv, hostVar+"="); ok {
			j.lost = path
		}
	}
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	stdin.Close()
	stdout.Close()
	t.Cleanup(func() { in.Close(); h.Process.Kill(); h.Wait() })
	fmt.Sscanf(j.line(), "host %d", &j.host)
	return j
}

type sessionJob struct {
	t    *testing.T
	host int
	in   *os.File
	file *os.File
	out  *bufio.Reader
	lost string
}

func (j *sessionJob) line() string {
	j.t.Helper()
	j.file.SetReadDeadline(time.Now().Add(patience))
	s, err := j.out.ReadString('\n')
	if err != nil {
		j.t.Fatalf("%v (%q)", err, s)
	}
	return strings.TrimSuffix(s, "\n")
}

func (j *sessionJob) expect(want string) {
	j.t.Helper()
	if got := j.line(); got != want {
		j.t.Fatalf("%q, want %q", got, want)
	}
}

// rest reads up to a last line, and returns what came before it.
func (j *sessionJob) rest(last string) (before string) {
	j.t.Helper()
	for {
		s := j.line()
		if s == last {
			return before
		}
		before += s + "\n"
	}
}

// Without a terminal, as with one, SIGTSTP stops leasehold and the command, and SIGCONT
// continues both.
func TestStopWithoutATerminal(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTOU} {
		j := jobWithoutTerminal(t, "echo $$; read x; echo read $x; exit 4")
		pid := atoi(t, j.line())
		if err := syscall.Kill(j.host, sig); err != nil {
			t.Fatal(err)
		}
		j.expect("stopped")
		waitStopped(t, pid)
		j.in.WriteString("on\n")
		if err := syscall.Kill(j.host, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if lines := j.rest("code 4"); !strings.Contains(lines, "read on\n") {
			t.Errorf("a continued job printed %q, want text with %q", lines, "read on\n")
		}
	}
}

func TestAJobWithoutATerminalThatLostItsLeaseDoesNotGoOn(t *testing.T) {
	j := jobWithoutTerminal(t, "trap 'echo went on' CONT TERM; echo ready; read x; echo read $x")
	j.expect("ready")
	if err := syscall.Kill(j.host, syscall.SIGTSTP); err != nil {
		t.Fatal(err)
	}
	j.expect("stopped")
	if err := os.WriteFile(j.lost, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j.in.WriteString("on\n")
	if err := syscall.Kill(j.host, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if lines := j.rest("code 123"); strings.Contains(lines, "went on") || strings.Contains(lines, "read") {
		t.Errorf("a lost job that was continued printed %q, want no %q and no %q", lines, "went on", "read")
	}
}

// In an orphaned process group the system does not stop leasehold, as no shell could continue
// it, and the command does not stay stopped either.
func TestStopInAnOrphanedGroup(t *testing.T) {
	out, stdout := pipe(t)
	stdin, in := pipe(t)
	h := hostCommand(t, "/bin/sh", "-c", "trap 'echo continued' CONT; echo ready; until read x; do :; done; echo read $x; exit 6")
	h.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	h.Stdin, h.Stdout = stdin, stdout
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	stdout.Close()
	out.SetReadDeadline(time.Now().Add(patience))
	r := bufio.NewReader(out)
	for _, want := range []string{"ready\n", "continued\n", "read on\n"} {
		s, err := r.ReadString('\n')
		if err != nil || s != want {
			t.Fatalf("%q, %v, want %q", s, err, want)
		}
		switch want {
		case "ready\n":
			h.Process.Signal(syscall.SIGTSTP)
		case "continued\n":
			in.WriteString("on\n")
		}
	}
	h.Wait()
	if code := h.ProcessState.ExitCode(); code != 6 {
		t.Errorf("exit code %d, want exit code %d", code, 6)
	}
}

func TestEndedByAForwardedSignal(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGALRM, syscall.SIGUSR2} {
		j := sh(t, ample, "echo ready; read forever")
		j.expect("ready")
		j.signals <- sig
		if o := j.end(); o.Code != 128+int(sig) || o.Signal != sig || o.Err != nil {
			t.Errorf("%v: %+v, want code %d, signal %v and no error", sig, o, 128+int(sig), sig)
		}
	}
}

// A signal that arrives while the command is being started ends it, as it would end any
// program that does not handle the signal yet.
func TestSignalsWhileTheCommandStarts(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGQUIT, syscall.SIGALRM, syscall.SIGABRT, syscall.SIGSEGV} {
		for i := range 12 {
			j := begin(t, ample, "/bin/sleep", "1000")
			time.Sleep(time.Duration(i) * time.Millisecond) // any moment will do
			j.signals <- sig
			if o := j.end(); o.Signal != sig || o.Err != nil {
				t.Errorf("%v after %dms: %+v, want the end by that signal and no error", sig, i, o)
			}
		}
	}
}

func TestNothingStartsAfterASignalToEnd(t *testing.T) {
	signals := make(chan os.Signal, 2)
	signals <- syscall.SIGWINCH // does not ask to end
	signals <- syscall.SIGTERM
	o := Run(Command{Path: "/does/not/exist", Stdin: os.Stdin}, Config{Lease: newLease(), Signals: signals})
	if o.Code != 128+15 || o.Err != nil {
		t.Errorf("%+v, want code %d and no error", o, 128+15)
	}
}

func TestNothingStartsWithoutALease(t *testing.T) {
	l := newLease()
	l.lose(errLost, 0)
	o := Run(Command{Path: "/does/not/exist", Stdin: os.Stdin}, Config{Lease: l})
	if o.Code != CodeLost || !errors.Is(o.Err, errLost) {
		t.Errorf("%+v, want code %d and error %v", o, CodeLost, errLost)
	}
}

func TestLossSignalsTheCommand(t *testing.T) {
	j := sh(t, ample, "trap 'echo told; exit 0' TERM; echo ready; while :; do sleep 1; done")
	j.expect("ready")
	j.lease.lose(errLost, time.Hour)
	j.expect("told")
	if o := j.end(); o.Code != CodeLost || !errors.Is(o.Err, errLost) {
		t.Errorf("%+v, want code %d and error %v", o, CodeLost, errLost)
	}
	if said := j.said(); !strings.Contains(said, "told to stop") || strings.Contains(said, "killed\n") {
		t.Errorf("reported: %s, want text with %q and no %q", said, "told to stop", "killed\n")
	}
}

const stubborn = "trap '' TERM; echo ready; while :; do sleep 1; done"

func TestLossKillsWhenTheGraceIsOver(t *testing.T) {
	j := sh(t, Budget{Grace: 100 * time.Millisecond, Slack: time.Second}, stubborn)
	j.expect("ready")
	j.lease.lose(errLost, time.Hour)
	if o := j.end(); o.Code != CodeLost || o.Signal != syscall.SIGKILL {
		t.Errorf("%+v, want code %d and signal %v", o, CodeLost, syscall.SIGKILL)
	}
	j.nobodyWrites()
}

func TestLossKillsBeforeValidityEnds(t *testing.T) {
	j := sh(t, Budget{Grace: time.Hour, Slack: 4 * time.Second}, stubborn)
	j.expect("ready")
	j.lease.lose(errLost, 5*time.Second)
	if o := j.end(); o.Code != CodeLost || o.Signal != syscall.SIGKILL {
		t.Errorf("%+v, want code %d and signal %v", o, CodeLost, syscall.SIGKILL)
	}
	if left := time.Until(j.lease.Deadline()); left <= 0 {
		t.Errorf("Run returned %v after the end of validity, want before it", -left)
	}
	j.nobodyWrites()
}

func TestAMovedDeadlineIsSeen(t *testing.T) {
	j := sh(t, Budget{Grace: time.Hour, Slack: time.Second}, stubborn)
	j.expect("ready")
	j.lease.lose(errLost, time.Hour)
	poll(t, "the command to be told", func() bool { return j.said() != "" })
	j.lease.mu.Lock()
	j.lease.deadline = time.Now() // as after a suspend: no timer of ours has run
	j.lease.mu.Unlock()
	if o := j.end(); o.Code != CodeLost {
		t.Errorf("%+v, want code %d", o, CodeLost)
	}
}

func TestLossEndsAStoppedCommand(t *testing.T) {
	j := sh(t, ample, "trap 'echo told; exit 0' TERM; echo $$; kill -STOP $$; echo went on; read forever")
	waitStopped(t, j.pid())
	j.lease.lose(errLost, time.Hour)
	j.expect("told")
	if o := j.end(); o.Code != CodeLost {
		t.Errorf("%+v, want code %d", o, CodeLost)
	}
}

func TestASignalledCommandDoesNotStayStopped(t *testing.T) {
	j := sh(t, ample, "trap 'kill -STOP $$; echo told; exit 0' TERM; echo ready; read forever")
	j.expect("ready")
	j.lease.lose(errLost, time.Hour)
	j.expect("told")
	if o := j.end(); o.Code != CodeLost {
		t.Errorf("%+v, want code %d", o, CodeLost)
	}
}

func TestLossKillsAStoppedCommand(t *testing.T) {
	j := sh(t, Budget{Slack: time.Second}, "echo $$; kill -STOP $$; echo went on")
	waitStopped(t, j.pid())
	j.lease.lose(errLost, time.Hour)
	if o := j.end(); o.Code != CodeLost || o.Signal != syscall.SIGKILL {
		t.Errorf("%+v, want code %d and signal %v", o, CodeLost, syscall.SIGKILL)
	}
	if rest, _ := io.ReadAll(j.out); len(rest) > 0 {
		t.Errorf("the command went on: %q, want no output", rest)
	}
}

func TestLossEndsBackgroundProcesses(t *testing.T) {
	j := sh(t, Budget{Grace: 200 * time.Millisecond, Slack: time.Second},
		"trap 'exit 0' TERM; (trap '' TERM; echo ready; while :; do sleep 1; done) & wait")
	j.expect("ready")
	j.lease.lose(errLost, time.Hour)
	if o := j.end(); o.Code != CodeLost || o.Signal != 0 {
		t.Errorf("%+v, want code %d and no signal", o, CodeLost)
	}
	j.nobodyWrites()
}

func TestBackgroundIsLeftAloneWhenTheLeaseHolds(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	j := sh(t, ample, "(read word <"+fifo+"; echo $word) & exit 3")
	if o := j.end(); o.Code != 3 || o.Err != nil {
		t.Errorf("%+v, want code %d and no error", o, 3)
	}
	w, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.WriteString("alive\n"); err != nil {
		t.Fatal(err)
	}
	j.expect("alive")
}

func TestLossAtTheEndOfTheCommandIsALoss(t *testing.T) {
	j := sh(t, ample, "echo ready; read go; exit 0")
	j.expect("ready")
	// Run asks for the deadline when it starts the command, before it waits, and again once
	// the command was executed. After that nothing but the end of the command wakes it.
	poll(t, "Run to wait for the end of the command", func() bool {
		j.lease.mu.Lock()
		defer j.lease.mu.Unlock()
		return j.lease.asked >= 3
	})
	// The lease is over by the clock; Done is not closed yet.
	j.lease.mu.Lock()
	j.lease.err, j.lease.deadline = errLost, time.Now()
	j.lease.mu.Unlock()
	if _, err := j.in.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	if o := j.end(); o.Code != CodeLost || !errors.Is(o.Err, errLost) {
		t.Errorf("%+v, want code %d and error %v", o, CodeLost, errLost)
	}
	if said := j.said(); !strings.Contains(said, "just ended") {
		t.Errorf("reported: %s, want text with %q", said, "just ended")
	}
}

// The kernel kills the command when the thread that started it ends. Threads of
// a Go program come and go, and each time the command stops, the thread that waits
// for it has something to do.
func TestCommandOutlivesOtherThreads(t *testing.T) {
	j := sh(t, ample, "echo $$; read go; exit 0")
	pid := j.pid()
	churn := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-churn:
					return
				default:
				}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
					syscall.Getpid()
				}()
				<-ended
			}
		})
	}
	for range 300 {
		syscall.Kill(pid, syscall.SIGSTOP)
		syscall.Kill(pid, syscall.SIGCONT)
		runtime.Gosched()
	}
	close(churn)
	wg.Wait()
	if _, err := j.in.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	if o := j.end(); o.Code != 0 {
		t.Errorf("%+v, want code %d", o, 0)
	}
}

// hostCommand is this binary as a program that runs args; see hostVar.
func hostCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := exec.Command(self, args...)
	h.Env = append(os.Environ(), hostVar+"="+filepath.Join(t.TempDir(), "lost"))
	h.Stderr = os.Stderr
	return h
}

func poll(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for %v for %s, in vain", patience, what)
		}
	}
}

func waitStopped(t *testing.T, pid int) {
	t.Helper()
	poll(t, "the command to be stopped", func() bool {
		out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
		return err == nil && strings.HasPrefix(string(out), "T")
	})
}

// A process that starts beside the command, such as one that gets credentials, does not hold up its end.
func TestProcessesThatStartMeanwhile(t *testing.T) {
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Fatal(err)
	}
	stdin, in := pipe(t)
	enough := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for n := 0; n < 400; n++ {
				select {
				case <-enough:
					return
				default:
				}
				beside := exec.Command(cat)
				beside.Stdin = stdin
				if err := beside.Start(); err != nil {
					t.Error(err)
					return
				}
				wg.Go(func() { beside.Wait() })
			}
		})
	}
	defer wg.Wait()
	defer in.Close() // ends them
	defer close(enough)
	for range 150 {
		j := begin(t, ample, "/bin/sh", "-c", "exit 7")
		select {
		case o := <-j.result:
			if o.Code != 7 {
				t.Fatalf("%+v, want exit code 7", o)
			}
		case <-time.After(patience):
			t.Fatal("the end of the command was not noticed while other processes run")
		}
	}
}

// The command inherits what we have inherited, by the same number.
func TestCommandInheritsFiles(t *testing.T) {
	r, w := pipe(t)
	fd, err := unix.FcntlInt(w.Fd(), unix.F_DUPFD, 3)
	if err != nil {
		t.Fatal(err)
	}
	if o := begin(t, ample, "/bin/sh", "-c", fmt.Sprintf("echo mine >/dev/fd/%d; exit 7", fd)).end(); o.Code != 7 {
		t.Errorf("%+v, want exit code 7", o)
	}
	unix.Close(fd)
	w.Close()
	if text, err := io.ReadAll(r); err != nil || string(text) != "mine\n" {
		t.Errorf("%q, %v, want what was written to the file", text, err)
	}
}

// The command inherits the tether, and nothing more, so that it keeps the flock on it.
func TestCommandInheritsTheTether(t *testing.T) {
	tether, err := os.Create(filepath.Join(t.TempDir(), "tether"))
	if err != nil {
		t.Fatal(err)
	}
	defer tether.Close()
	out, stdout := pipe(t)
	o := Run(Command{Path: "/bin/sh", Args: []string{"sh", "-c", "echo tied >&3; for fd in 4 5 6 7 8 9; do (true >&$fd) 2>/dev/null && echo $fd; done; exit 0"}, Env: os.Environ(), Stdin: os.Stdin, Stdout: stdout, Stderr: os.Stderr, Tether: tether},
		Config{Lease: newLease(), Budget: NewBudget(0, 0), Signals: make(chan os.Signal)})
	stdout.Close()
	more, err := io.ReadAll(out)
	if text, _ := os.ReadFile(tether.Name()); o.Code != 0 || string(text) != "tied\n" || len(more) > 0 || err != nil {
		t.Errorf("%+v: the tether has %q, and the command the descriptors %q (%v), want tied and no more", o, text, more, err)
	}
}
