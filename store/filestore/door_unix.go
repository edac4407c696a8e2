//go:build unix && !linux

package filestore

import "golang.org/x/sys/unix"

// setDoor is a lock of the process, which ends early if SQLite closes a connection
// while it opens the file. That leaves a gap of microseconds for two processes that
// open a file somebody is damaging at that moment.
const setDoor = unix.F_SETLK
