package contend

import "syscall"

// dieWithUs makes the kernel end a worker when we die, in whatever way: one that
// is frozen does not notice by itself.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
