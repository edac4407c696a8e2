//go:build unix && !linux

package runner

import (
	"os"
	"syscall"
	"time"
)

func ownExecutable() (string, error) { return os.Executable() }

// openProcess: there is no such thing here.
func openProcess(int) *os.File { return nil }

func killProcess(pid int) { syscall.Kill(pid, syscall.SIGKILL) }

var started = time.Now()

// bootTime is not shared between processes here, and need not be: see isStopped.
func bootTime() time.Duration { return time.Since(started) }

// isStopped: it is not known here. A stopped leasehold leaves the command running.
func isStopped(int) bool { return false }
