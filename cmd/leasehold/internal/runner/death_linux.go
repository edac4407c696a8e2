package runner

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the kernel kill the command if this process dies without a
// chance to stop it: the command would go on without a lock. It covers only the
// command itself, not the processes it started, and not a command that changes
// its user by a set-user-ID bit.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// adoptOrphans makes this process, instead of the machine's first process, the
// parent of orphans, so that it notices when they end. Not every first process
// reaps them in time.
func adoptOrphans() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // without it, we may wait a little longer
}
