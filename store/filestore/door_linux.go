package filestore

import "golang.org/x/sys/unix"

// setDoor is a lock of the open file: unlike other fcntl locks it does not end
// when SQLite closes a descriptor of its own.
const setDoor = unix.F_OFD_SETLK
