//go:build unix && !linux

package sigaction

import (
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// fatal makes sig end the program. The language's runtime does that for a few signals only;
// for others a shell, which becomes this process, sends itself the signal.
func fatal(sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGKILL:
		return true
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM:
		signal.Reset(sig)
		return true
	}
	if sh, err := exec.LookPath("sh"); err == nil {
		syscall.Exec(sh, []string{"sh", "-c", "kill -" + strconv.Itoa(int(sig)) + " $$"}, nil)
	}
	return false
}

func noCore() { unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) }
