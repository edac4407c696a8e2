package conn

import (
	"syscall"
	"unsafe"
)

// These calls do not block, so Go's scheduler need not know about them. Through it, the
// first call after each pause would wake up the runtime's monitor thread, which costs as
// much as the call itself, and most calls of a client come after a pause.

func sysRead(fd int, b []byte) (int, error) { return sysTransfer(syscall.SYS_READ, fd, b) }

func sysWrite(fd int, b []byte) (int, error) { return sysTransfer(syscall.SYS_WRITE, fd, b) }

func sysTransfer(call uintptr, fd int, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
