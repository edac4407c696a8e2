package runner

import "syscall"

// dieWithParent has the kernel kill the command when we die in a way that
// leaves us no chance to stop it: it would go on without a lock. It covers the
// command itself, not what that has started, and not one that changes its user
// by a set-user-ID bit.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
