//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

func TestRunPassesInputAndOutput(t *testing.T) {
	s := newSite(t)
	p := s.start("run", "x", "--", "/bin/sh", "-c", "cat; echo err >&2")
	p.in.Write([]byte("in\x00\xff\n"))
	p.in.Close()
	p.wants(0)
	if p.out.String() != "in\x00\xff\n" || p.err.String() != "err\n" {
		t.Errorf("stdout %q, stderr %q, want %q and %q", p.out.String(), p.err.String(), "in\x00\xff\n", "err\n")
	}
}

func TestRunEnvironment(t *testing.T) {
	s := newSite(t, "LEASEHOLD_NAME=of somebody else", "KEEP=me")
	before := time.Now()
	vars := func() map[string]string {
		m := map[string]string{}
		for line := range strings.Lines(s.run(0, "run", "x y", "--ttl", "20s", "--", "env").out.String()) {
			key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			m[key] = value
		}
		return m
	}
	first, second := vars(), vars()
	if first["LEASEHOLD_NAME"] != "x y" || first["KEEP"] != "me" {
		t.Errorf("%v, want the name of the inner lock, and KEEP as it was", first)
	}
	if len(first["LEASEHOLD_OWNER"]) != 27 || first["LEASEHOLD_OWNER"] == second["LEASEHOLD_OWNER"] {
		t.Errorf("owners %q, %q, want two of 27 characters that differ", first["LEASEHOLD_OWNER"], second["LEASEHOLD_OWNER"])
	}
	a, err1 := strconv.ParseUint(first["LEASEHOLD_TOKEN"], 10, 64)
	b, err2 := strconv.ParseUint(second["LEASEHOLD_TOKEN"], 10, 64)
	if err1 != nil || err2 != nil || a >= b {
		t.Errorf("tokens %d, %d (%v, %v), want rising ones", a, b, err1, err2)
	}
	deadline, err := time.Parse(time.RFC3339Nano, first["LEASEHOLD_DEADLINE"])
	if err != nil || deadline.Before(before) || deadline.After(time.Now().Add(20*time.Second)) {
		t.Errorf("deadline %q (%v), want one within the TTL of 20s", first["LEASEHOLD_DEADLINE"], err)
	}
}

func TestRunSaysWhenTheHolderChanges(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t)
	h := s.hold("x", "--purpose", "first")
	// The lock goes to the waiter first, which stands still, so its lease must expire.
	waiter := s.start("run", "x", "--ttl", "3s", "--", "true")
	waiter.says(&waiter.err, "(first)")
	waiter.freeze() // so that the other is quicker
	h.let()
	h = s.hold("x", "--purpose", "second")
	waiter.signal(syscall.SIGCONT)
	waiter.says(&waiter.err, "(second)")
	h.let()
	waiter.wants(0)
}

func TestRunSignalsWhileWaiting(t *testing.T) {
	s := newSite(t)
	h := s.hold("x")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGSEGV} {
		p := s.start("run", "x", "--", "echo", "ran")
		p.says(&p.err, " for \"x\"")
		p.signal(syscall.SIGUSR1) // says nothing about ending
		p.signal(sig)
		p.wants(128 + int(sig))
		if p.out.String() != "" {
			t.Errorf("%v: stdout %s, want nothing on stdout", sig, p.out.String())
		}
	}
	h.let()
	if out := s.run(0, "ls", "--json").out.String(); strings.TrimSpace(out) != "[]" {
		t.Errorf("locks %s are left, want none", out)
	}
}

func TestRunSignalsWhileRunning(t *testing.T) {
	s := newSite(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1} {
		p := s.hold("x")
		p.signal(sig)
		p.wants(128 + int(sig))
		s.run(0, "show", "x", "--exit-code") // it is free again
	}
	p := s.start("run", "x", "--", "/bin/sh", "-c", "trap 'echo bye; exit 3' TERM; echo held; read x")
	p.says(&p.out, "held")
	p.signal(syscall.SIGTERM)
	p.wants(3)
	if !strings.Contains(p.out.String(), "bye") {
		t.Errorf("stdout %s, want text with %q", p.out.String(), "bye")
	}
}

func TestRunKeepsAnIgnoredHangup(t *testing.T) {
	s := newSite(t)
	p := s.exec("/bin/sh", "-c", `trap "" HUP; exec "$0" run x -- /bin/sh -c 'echo held; read x; exit 6'`, binary)
	p.says(&p.out, "held")
	p.signal(syscall.SIGHUP)
	p.in.Write([]byte("\n"))
	p.wants(6)
}

func TestRunMinHold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	began := time.Now()
	p := s.start("run", "x", "--min-hold", "4s", "--", "/bin/sh", "-c", "echo done; exit 4")
	p.says(&p.out, "done")
	s.run(124, "run", "x", "--try", "--", "true")
	p.wants(4)
	if took := time.Since(began); took < 4*time.Second {
		t.Errorf("released after %v, want 4s at least", took)
	}
	s.run(0, "run", "x", "--try", "--", "true")
}

func TestRunMinHoldIsCutShortByASignal(t *testing.T) {
	s := newSite(t)
	p := s.start("run", "x", "--min-hold", "1h", "--", "/bin/sh", "-c", "echo done; exit 4")
	p.says(&p.out, "done")
	// Until the command has ended the signal is for the command.
	poll(t, func() string {
		p.signal(syscall.SIGTERM)
		if p.err.String() == "" {
			return "a word about the lock that stays taken"
		}
		return ""
	})
	if code := p.end(); code != 4 && code != 128+15 {
		t.Errorf("exit code %d, want 4, or that of SIGTERM", code)
	}
	s.run(124, "run", "x", "--try", "--", "true")
	if left := s.expiresIn("x"); left < 30*time.Minute {
		t.Errorf("the lock ends in %v, want 30m at least", left)
	}
}

// expiresIn is when a lock that is held ends unless it is renewed.
func (s *site) expiresIn(name string) time.Duration {
	s.t.Helper()
	var state struct {
		Expires int64 `json:"expires_in_ms"`
	}
	if err := json.Unmarshal([]byte(s.run(0, "show", name, "--json").out.String()), &state); err != nil {
		s.t.Fatal(err)
	}
	return time.Duration(state.Expires) * time.Millisecond
}

// A store that keeps no lock for that long without renewals needs run to stay and
// renew. A second signal ends that.
func TestRunMinHoldLongerThanTheStoreKeepsALock(t *testing.T) {
	s := newSite(t, storeVar+"="+redistest.Start(t).URL()+"?max_ttl=1m")
	p := s.start("run", "x", "--ttl", "3s", "--min-hold", "1h", "--", "/bin/sh", "-c", "echo done; exit 4")
	p.says(&p.out, "done")
	p.says(&p.err, "held for")
	p.signal(syscall.SIGTERM)
	p.says(&p.err, "again to exit now")
	if left := s.expiresIn("x"); left > 3*time.Second {
		t.Errorf("the lock ends in %v, want 3s at most", left)
	}
	p.signal(syscall.SIGTERM)
	p.wants(4)
	if left := s.expiresIn("x"); left < 30*time.Second {
		t.Errorf("the lock ends in %v, want 30s at least", left)
	}
}

// A command that is stopped for --max-hold keeps the lock until --min-hold is over.
func TestRunMinHoldOutlastsMaxHold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	began := time.Now()
	p := s.start("run", "x", "--min-hold", "6s", "--max-hold", "6s", "--grace", "3s", "--", "/bin/sh", "-c", "trap 'echo told; exit 0' TERM; echo held; read x")
	p.says(&p.out, "told")
	s.run(0, "run", "x", "--", "true")
	if took := time.Since(began); took < 6*time.Second {
		t.Errorf("free after %v, want 6s at least", took)
	}
	p.wants(123)
	// A command that ended before --max-hold was not stopped for it.
	began = time.Now()
	s.run(0, "run", "y", "--min-hold", "3s", "--max-hold", "3s", "--", "true")
	if took := time.Since(began); took < 3*time.Second {
		t.Errorf("released after %v, want 3s at least", took)
	}
}

// A killed leasehold does not leave its command behind, even one for which the
// kernel drops the death signal, as it does when a command becomes another user.
func TestRunKilled(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t)
	command := []string{"/bin/sh", "-c", "echo held by $$.; read x"}
	if setpriv, err := exec.LookPath("setpriv"); err == nil {
		command = append([]string{setpriv, "--pdeathsig", "clear"}, command...)
	}
	p := s.start(append([]string{"run", "x", "--ttl", "5s", "--"}, command...)...)
	p.says(&p.out, ".\n")
	var pid int
	if _, err := fmt.Sscanf(p.out.String(), "held by %d.", &pid); err != nil {
		t.Fatal(err)
	}
	p.cmd.Process.Kill()
	poll(t, func() string {
		stat, _ := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
		if len(stat) == 0 || stat[0] == 'Z' { // gone, or waits to be reaped
			return ""
		}
		return "the end of the command"
	})
	p.end()
	s.run(0, "run", "x", "--", "true")
}

// SIGHUP and SIGINT are ignored in the command if they were when leasehold was started.
func TestRunKeepsIgnoredSignals(t *testing.T) {
	s := newSite(t)
	for _, sig := range []string{"HUP", "INT"} {
		for trap, lives := range map[string]bool{`trap "" `: true, "trap - ": false} {
			p := s.exec("/bin/sh", "-c", trap+sig+`; exec "$0" run x -- /bin/sh -c 'kill -`+sig+` $$'`, binary)
			if code := p.end(); (code == 0) != lives {
				t.Errorf("%s%s: the command ended with %d: %s", trap, sig, code, &p.err)
			}
		}
	}
}

// A shell sees how the command ended: leasehold dies of the same signal, and leaves no core
// dump.
func TestRunDiesOfTheSignalOfTheCommand(t *testing.T) {
	s := newSite(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGUSR1, syscall.SIGPIPE, syscall.SIGKILL, syscall.SIGSEGV} {
		p := s.start("run", "x", "--", "/bin/sh", "-c", fmt.Sprintf("kill -%d $$", sig))
		p.end()
		ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !ws.Signaled() || ws.Signal() != sig || ws.CoreDump() || p.err.String() != "" {
			t.Errorf("%v: %v, core dump %v, stderr %s, want the end by that signal, and nothing else", sig, p.cmd.ProcessState, ws.CoreDump(), p.err.String())
		}
		s.run(0, "show", "x", "--exit-code") // the lock was released before
	}
	h := s.hold("x")
	for _, args := range [][]string{{"run", "x", "--", "true"}, {"acquire", "x", "--ttl", "9s"}, {"wait", "x"}} {
		p := s.start(args...)
		p.says(&p.err, ` for "x"`)
		p.signal(syscall.SIGINT)
		p.end()
		if ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != syscall.SIGINT {
			t.Errorf("%q that waits ended with %v, want the end by SIGINT", args, p.cmd.ProcessState)
		}
	}
	h.let()
}
