package filestore

import "golang.org/x/sys/unix"

// yield lets other processes run, if there are any that want this processor.
func yield() { _, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// nap sleeps for less than the millisecond that is the least for a Go timer in a
// process with nothing else to do.
func nap() {
	_ = unix.Nanosleep(&unix.Timespec{Nsec: 20_000}, nil) // a signal may end it early
}
