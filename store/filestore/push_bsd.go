//go:build unix && !linux

package filestore

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

func datagramSocket() (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return -1, err
	}
	unix.CloseOnExec(fd)
	return fd, unix.SetNonblock(fd, true)
}

// address returns the address of a socket in dir. It fails if the path is longer
// than the kernel allows; waiters then poll.
func address(dir, name string) (addr string, done func(), err error) {
	const longest = 103
	addr = dir + "/" + name
	if len(addr) > longest {
		return "", nil, fmt.Errorf("the path %s is longer than the %d bytes that a socket's can have", addr, longest)
	}
	return addr, func() {}, nil
}
