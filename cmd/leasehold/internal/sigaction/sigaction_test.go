//go:build unix

package sigaction

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// roleVar makes the test binary a program that prints what it finds ignored, or dies of the
// signal that it names.
const roleVar = "SIGACTION_TEST_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVar); role {
	case "":
		os.Exit(m.Run())
	case "ignored":
		fmt.Println(Ignored())
	default:
		var sig syscall.Signal
		fmt.Sscan(role, &sig)
		Die(sig, false)
		os.Exit(99)
	}
}

func program(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("/bin/sh", append([]string{"-c"}, args...)...)
	c.Env = append(os.Environ(), roleVar+"="+role, "SELF="+self, "GORACE=atexit_sleep_ms=0")
	c.Dir = t.TempDir()
	return c
}

// The program finds what a shell had ignored before it executed it.
func TestIgnoredAtTheStart(t *testing.T) {
	for trap, want := range map[string][]syscall.Signal{
		"trap - HUP INT":       {},
		"trap '' HUP":          {syscall.SIGHUP},
		"trap '' HUP INT USR1": {syscall.SIGHUP, syscall.SIGINT},
	} {
		out, err := program(t, "ignored", trap+`; exec "$SELF"`).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != fmt.Sprint(want) {
			t.Errorf("%s: %s, %v, want %v", trap, got, err, want)
		}
	}
}

func TestDie(t *testing.T) {
	sigs := []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGUSR1, syscall.SIGALRM, syscall.SIGPIPE, syscall.SIGSEGV, syscall.SIGXCPU}
	if runtime.GOOS == "linux" {
		sigs = append(sigs, 30, 40, 64)
	}
	for _, sig := range sigs {
		c := program(t, fmt.Sprint(int(sig)), `ulimit -c unlimited; exec "$SELF"`)
		out, err := c.CombinedOutput()
		ws := c.ProcessState.Sys().(syscall.WaitStatus)
		if !ws.Signaled() || ws.Signal() != sig || ws.CoreDump() || strings.Contains(string(out), "goroutine") {
			t.Errorf("%v: %v, core dump %v: %s", sig, err, ws.CoreDump(), out)
		}
		if left, _ := os.ReadDir(c.Dir); slices.ContainsFunc(left, func(e os.DirEntry) bool { return strings.Contains(e.Name(), "core") }) {
			t.Errorf("%v left %v", sig, left)
		}
	}
}
