package runner

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent has the kernel kill the command when we die in a way that
// leaves us no chance to stop it: it would go on without a lock. It covers the
// command itself, not what that has started, and not one that changes its user
// by a set-user-ID bit.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// adoptOrphans makes us, and not the first process of the machine, the parent
// of processes whose own parent ends from now on, so that we notice when they
// are gone: not every first process takes note in time.
func adoptOrphans() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // without it, we may wait a little longer
}
