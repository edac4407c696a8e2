package torture

import (
	"os/exec"
	"syscall"
)

// apart keeps a worker out of our process group, so that Ctrl-C is ours to
// handle, and has the kernel end it when we die: a stopped one would not notice.
func apart(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
