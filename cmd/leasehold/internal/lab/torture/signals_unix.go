//go:build unix

package torture

import (
	"os"
	"syscall"
)

// canStop reports whether this system can stop a process and let it go on.
const canStop = true

func (w *process) stop() { w.cmd.Process.Signal(syscall.SIGSTOP) }
func (w *process) cont() { w.cmd.Process.Signal(syscall.SIGCONT) }

// dump has a process write what its goroutines are at, and end.
func (w *process) dump() { w.cmd.Process.Signal(syscall.SIGQUIT) }

// signalled reports whether a process was ended from outside.
func signalled(s *os.ProcessState) bool {
	status, ok := s.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}
