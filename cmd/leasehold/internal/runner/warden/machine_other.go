//go:build unix && !linux

package warden

import (
	"os"
	"syscall"
	"time"
)

// OwnExecutable returns the path of this program.
func OwnExecutable() (string, error) { return os.Executable() }

// OpenProcess returns nil: there is no such file here.
func OpenProcess(int) *os.File { return nil }

func killProcess(pid int) { syscall.Kill(pid, syscall.SIGKILL) }

var started = time.Now()

// BootTime is a clock of this process alone. It need not be shared: see isStopped.
func BootTime() time.Duration { return time.Since(started) }

// Parent: it is not known here.
func Parent(int) int { return 0 }

// isStopped: it is not known here. A stopped leasehold leaves the command running.
func isStopped(int) bool { return false }
