//go:build unix && !linux

package torture

import (
	"os/exec"
	"syscall"
)

// apart keeps a worker out of our process group, so that Ctrl-C is ours to
// handle. When we die it notices, because its standard input ends.
func apart(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
