package torture

import (
	"os"
	"os/exec"
	"syscall"
)

// apart keeps Ctrl-C from a worker: it is ours to handle.
func apart(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// canStop reports whether this system can stop a process and let it go on.
const canStop = false

func (w *process) stop() {}
func (w *process) cont() {}
func (w *process) dump() {}

// signalled cannot be told here from an end of its own.
func signalled(*os.ProcessState) bool { return true }
