package servers

import "syscall"

// dieWithUs makes the kernel end the server when this process dies in any way.
func dieWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
