package filestore

import "golang.org/x/sys/unix"

// setLock and getLock are about locks of the open file: unlike other fcntl locks they do not
// end when SQLite closes a descriptor of its own.
const (
	setLock = unix.F_OFD_SETLK
	getLock = unix.F_OFD_GETLK
)
