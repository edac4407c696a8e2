package filestore

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func datagramSocket() (int, error) {
	return unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
}

// address returns an address for a socket in dir that fits into the 107 bytes
// that the kernel allows. done must be called after use.
func address(dir, name string) (addr string, done func(), err error) {
	const longest = 107
	if addr := dir + "/" + name; len(addr) <= longest {
		return addr, func() {}, nil
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", fd, name), func() { _ = unix.Close(fd) }, nil
}
