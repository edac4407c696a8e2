//go:build unix && !linux

package filestore

import "golang.org/x/sys/unix"

// setLock and getLock are about locks of the process, which end early if SQLite closes a
// connection while it opens the file. That leaves a gap of microseconds for two processes that
// open a file somebody is damaging at that moment.
const (
	setLock = unix.F_SETLK
	getLock = unix.F_GETLK
)
