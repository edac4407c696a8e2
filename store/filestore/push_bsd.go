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

// address is how a socket in dir is called. There is no way round the length that
// the kernel takes; those who wait for a file with a longer path poll it.
func address(dir, name string) (addr string, done func(), err error) {
	const longest = 103
	addr = dir + "/" + name
	if len(addr) > longest {
		return "", nil, fmt.Errorf("the path %s is longer than the %d bytes that a socket's can have", addr, longest)
	}
	return addr, func() {}, nil
}
