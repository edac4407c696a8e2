package runner

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A command, and what it has started, end with leasehold even if the command has dropped
// its death signal or its user.
func TestCommandDiesWithLeasehold(t *testing.T) {
	script := []string{"/bin/sh", "-c", "trap '' TERM HUP; (echo ready; read forever <&3) 3<&0 & echo ready; read forever"}
	for name, before := range map[string][]string{
		"plain":           nil,
		"no death signal": {"/usr/bin/setpriv", "--pdeathsig", "clear"},
		"another user":    {"/usr/bin/setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getuid() != 0 && name == "another user" {
				t.Skip("only root can become another user")
			}
			out, stdout := pipe(t)
			stdin, _ := pipe(t) // its other end stays open
			h := hostCommand(t, append(before, script...)...)
			h.Stdin, h.Stdout = stdin, stdout
			if err := h.Start(); err != nil {
				t.Fatal(err)
			}
			stdout.Close()
			out.SetReadDeadline(time.Now().Add(patience))
			r := bufio.NewReader(out)
			for range 2 {
				if s, err := r.ReadString('\n'); err != nil {
					t.Fatalf("%v (%q)", err, s)
				}
			}
			h.Process.Kill()
			h.Wait()
			if rest, err := io.ReadAll(r); err != nil {
				t.Errorf("a process of the command is left after leasehold was killed: %v (%q)", err, rest)
			}
		})
	}
}

// A stopped leasehold renews nothing and can stop nothing: the command ends with
// the lease all the same.
func TestCommandEndsWithTheLeaseOfAStoppedHost(t *testing.T) {
	t.Parallel() // it mostly waits
	// The command writes to it, and the stopped host does not have it open.
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	stdin, _ := pipe(t)
	h := hostCommand(t, "/bin/sh", "-c", "trap '' TERM HUP; exec >"+fifo+"; echo ready; read forever")
	h.Env = append(h.Env, validVar+"=3s")
	h.Stdin = stdin
	began := time.Now()
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Process.Kill(); h.Wait() })
	out, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	out.SetReadDeadline(time.Now().Add(patience))
	r := bufio.NewReader(out)
	if s, err := r.ReadString('\n'); err != nil {
		t.Fatalf("%v (%q)", err, s)
	}
	h.Process.Signal(syscall.SIGSTOP)
	if rest, err := io.ReadAll(r); err != nil {
		t.Errorf("the command is left after the end of the lease: %v (%q)", err, rest)
	}
	if took := time.Since(began); took < 3*time.Second {
		t.Errorf("the command was killed after %v, want 3s at least, the validity of the lease", took)
	}
}

// Run reaps the orphans of a killed command: the process that would otherwise adopt them may
// be slow to do so.
func TestOrphansOfAKilledCommandAreReaped(t *testing.T) {
	j := sh(t, Budget{Slack: time.Second}, "(echo ready; while :; do sleep 1; done) & wait")
	j.expect("ready")
	j.lease.lose(errLost, time.Hour)
	if o := j.end(); o.Code != CodeLost || o.Signal != syscall.SIGKILL {
		t.Errorf("%+v, want code %d and signal %v", o, CodeLost, syscall.SIGKILL)
	}
	if said := j.said(); strings.Contains(said, "not gone yet") {
		t.Errorf("reported: %s, want no %q", said, "not gone yet")
	}
}

// Each signal that can be caught reaches the command: a program that asks for SIGALRM,
// SIGABRT, a real-time signal, or SIGSEGV from another process gets it.
func TestEverySignalReachesTheCommand(t *testing.T) {
	out, stdout := pipe(t)
	stdin, _ := pipe(t)
	caught := []int{1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 14, 15, 16, 24, 25, 26, 28, 29, 30, 31, 35, 64}
	h := hostCommand(t, "/bin/sh", "-c", `for s in `+strings.Trim(fmt.Sprint(caught), "[]")+`; do trap "echo got $s" $s; done
		exec 2>/dev/null; echo ready; while :; do sleep 0.1; done`)
	h.Stdin, h.Stdout = stdin, stdout
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	stdout.Close()
	r := bufio.NewReader(out)
	line := func(want string) {
		t.Helper()
		out.SetReadDeadline(time.Now().Add(patience)) // for each: the shell starts a process before each trap
		if s, err := r.ReadString('\n'); err != nil || s != want+"\n" {
			t.Fatalf("%q, %v, want %q", s, err, want)
		}
	}
	t.Cleanup(func() { h.Process.Kill(); h.Wait() })
	line("ready")
	for _, sig := range caught {
		if err := h.Process.Signal(syscall.Signal(sig)); err != nil {
			t.Fatal(sig, err)
		}
		line("got " + strconv.Itoa(sig))
	}
}
