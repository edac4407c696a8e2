package contend

import "syscall"

// dieWithUs makes the kernel end a worker when this process dies in any way: a frozen
// worker does not notice by itself.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
