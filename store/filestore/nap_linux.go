package filestore

import "golang.org/x/sys/unix"

// nap sleeps for less than the millisecond that is the least for a Go timer in a process with
// nothing else to do.
func nap() {
	_ = unix.Nanosleep(&unix.Timespec{Nsec: 20_000}, nil) // a signal may end it early
}
