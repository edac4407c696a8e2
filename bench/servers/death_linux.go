package servers

import "syscall"

// dieWithUs makes the kernel end the server when we die, in whatever way.
func dieWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
