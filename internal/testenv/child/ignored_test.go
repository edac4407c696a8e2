//go:build unix

package child

import (
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
)

// After DefaultSignals, SIGHUP ends a child, although this process ignores it.
func TestDefaultSignals(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	DefaultSignals()
	err := exec.Command("sh", "-c", "kill -HUP $$; exit 0").Run()
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGHUP {
		t.Errorf("a child that sent itself SIGHUP ended with %v, want by that signal", err)
	}
}
