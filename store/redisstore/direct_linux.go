package redisstore

import (
	"syscall"
	"unsafe"
)

// These calls do not wait, so Go's scheduler need not know of them. It would have
// its monitor woken up by the first one after each pause, which costs as much as
// the call: most of what a client does comes after a pause.

func sysRead(fd int, b []byte) (int, error) { return sysTransfer(syscall.SYS_READ, fd, b) }

func sysWrite(fd int, b []byte) (int, error) { return sysTransfer(syscall.SYS_WRITE, fd, b) }

func sysTransfer(call uintptr, fd int, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
