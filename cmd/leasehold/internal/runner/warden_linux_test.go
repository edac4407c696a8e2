package runner

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// helperOf returns the pid of a child of host whose arguments begin with name, or
// zero if it has none.
func helperOf(host int, name string) int {
	var children []byte
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", host))
	for _, task := range tasks {
		more, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", host, task.Name()))
		children = append(append(children, ' '), more...)
	}
	for _, child := range strings.Fields(string(children)) {
		args, _ := os.ReadFile("/proc/" + child + "/cmdline")
		if bytes.HasPrefix(args, []byte(name+"\x00")) {
			pid, _ := strconv.Atoi(child)
			return pid
		}
	}
	return 0
}

// loseLease ends the lease of a host.
func loseLease(t *testing.T, h *exec.Cmd) {
	for _, kv := range h.Env {
		if path, ok := strings.CutPrefix(kv, hostVar+"="); ok {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Ctrl-Z may stop the process that becomes the command before it has executed it. It is
// killed all the same when the lease is lost.
func TestLossKillsACommandStoppedBeforeItRan(t *testing.T) {
	for range 50 {
		stdin, _ := pipe(t)
		h := hostCommand(t, "/bin/cat")
		h.Stdin = stdin
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- h.Wait() }()
		gate := 0
		for deadline := time.Now().Add(patience); gate == 0 && helperOf(h.Process.Pid, "/bin/cat") == 0; {
			gate = helperOf(h.Process.Pid, "leasehold-gate")
			if time.Now().After(deadline) {
				t.Fatalf("no command was started within %v", patience)
			}
		}
		if gate != 0 {
			syscall.Kill(gate, syscall.SIGSTOP)
		}
		if gate == 0 || helperOf(h.Process.Pid, "leasehold-gate") != gate {
			h.Process.Kill() // the command runs already: try again
			<-ended
			continue
		}
		loseLease(t, h)
		select {
		case <-ended:
			if code := h.ProcessState.ExitCode(); code != CodeLost {
				t.Errorf("code %d, want %d", code, CodeLost)
			}
		case <-time.After(patience):
			syscall.Kill(gate, syscall.SIGKILL)
			h.Process.Kill()
			t.Error("the lease is over, and the stopped command has not ended, want it killed")
		}
		return
	}
	t.Fatal("no command was stopped before it ran in 50 tries")
}

// The code of a process that ended before it became the command is not the
// command's.
func TestACommandThatWasNeverExecutedHasNoCode(t *testing.T) {
	_, w := pipe(t) // takes the error of the Go runtime
	o := Run(Command{Path: "/bin/true", Args: []string{"true"}, Env: []string{"GOMEMLIMIT=nonsense"}, Stdin: os.Stdin, Stdout: w, Stderr: w},
		Config{Lease: newLease(), Budget: Budget{Grace: time.Second}})
	o.Reap()
	var failed *StartError
	if o.Started || o.Code != CodeTrouble || !errors.As(o.Err, &failed) {
		t.Errorf("%+v, want code %d and a StartError", o, CodeTrouble)
	}
}

// A guard that was killed, by a machine that is out of memory say, is replaced.
func TestAKilledGuardIsReplaced(t *testing.T) {
	t.Parallel() // it mostly waits
	stdin, _ := pipe(t)
	out, stdout := pipe(t)
	h := hostCommand(t, "/bin/sh", "-c", "trap '' TERM HUP; (echo ready; read forever <&3) 3<&0 & read forever")
	h.Env = append(h.Env, validVar+"=40s")
	h.Stdin, h.Stdout = stdin, stdout
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	stdout.Close()
	t.Cleanup(func() { h.Process.Kill(); h.Wait() })
	out.SetReadDeadline(time.Now().Add(2 * patience))
	r := bufio.NewReader(out)
	if s, err := r.ReadString('\n'); err != nil {
		t.Fatalf("%v (%q)", err, s)
	}
	first := helperOf(h.Process.Pid, "leasehold-guard")
	if first == 0 {
		t.Fatal("leasehold has no guard process, want one")
	}
	syscall.Kill(first, syscall.SIGKILL)
	poll(t, "another guard", func() bool {
		next := helperOf(h.Process.Pid, "leasehold-guard")
		return next != 0 && next != first
	})
	h.Process.Kill()
	if rest, err := io.ReadAll(r); err != nil {
		t.Errorf("what the command has started is left after leasehold was killed: %v (%q)", err, rest)
	}
}

// If the guard is killed together with leasehold, the command is still killed. What it has
// started runs on: only a cgroup could end that.
func TestCommandDiesWithLeaseholdAndItsGuard(t *testing.T) {
	stdin, _ := pipe(t) // its other end stays open
	out, stdout := pipe(t)
	h := hostCommand(t, "/bin/sh", "-c", "(trap '' TERM HUP; read forever <&3) 3<&0 >/dev/null 2>&1 & echo ready; read forever")
	h.Stdin, h.Stdout = stdin, stdout
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	stdout.Close()
	out.SetReadDeadline(time.Now().Add(patience))
	r := bufio.NewReader(out)
	if s, err := r.ReadString('\n'); err != nil {
		t.Fatalf("%v (%q)", err, s)
	}
	guard, command := helperOf(h.Process.Pid, "leasehold-guard"), helperOf(h.Process.Pid, "/bin/sh")
	if guard == 0 || command == 0 {
		t.Fatalf("guard %d, command %d, want both to run", guard, command)
	}
	t.Cleanup(func() { syscall.Kill(-command, syscall.SIGKILL) })
	h.Process.Signal(syscall.SIGSTOP) // or it would start another guard
	syscall.Kill(guard, syscall.SIGKILL)
	h.Process.Kill()
	h.Wait()
	if rest, err := io.ReadAll(r); err != nil {
		t.Errorf("the command is left after leasehold was killed: %v (%q)", err, rest)
	}
	if syscall.Kill(-command, 0) != nil {
		t.Error("nothing of the command's group is left, want what it has started, as in docs/limits.md")
	}
}

// If leasehold is stopped and its guard is killed, nobody ends the command at the end of the
// lease. Leasehold does when it continues.
func TestAStoppedHostWithoutAGuardKillsWhenItContinues(t *testing.T) {
	stdin, in := pipe(t)
	out, stdout := pipe(t)
	h := hostCommand(t, "/bin/sh", "-c", "trap '' TERM; echo ready; while read x; do echo $x; done; read forever <&2")
	h.Stdin, h.Stdout = stdin, stdout
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	stdout.Close()
	t.Cleanup(func() { h.Process.Kill(); h.Wait() })
	out.SetReadDeadline(time.Now().Add(patience))
	r := bufio.NewReader(out)
	line := func(want string) {
		t.Helper()
		if s, err := r.ReadString('\n'); err != nil || s != want+"\n" {
			t.Fatalf("%q, %v, want %q", s, err, want)
		}
	}
	line("ready")
	guard := 0
	poll(t, "a guard", func() bool { guard = helperOf(h.Process.Pid, "leasehold-guard"); return guard != 0 })
	h.Process.Signal(syscall.SIGSTOP)
	waitStopped(t, h.Process.Pid)
	syscall.Kill(guard, syscall.SIGKILL)
	loseLease(t, h)
	in.WriteString("goes on\n")
	line("goes on")
	h.Process.Signal(syscall.SIGCONT)
	if rest, err := io.ReadAll(r); err != nil {
		t.Errorf("the command is left after leasehold continued: %v (%q)", err, rest)
	}
	h.Wait()
	if code := h.ProcessState.ExitCode(); code != CodeLost {
		t.Errorf("exit code %d, want %d", code, CodeLost)
	}
}
