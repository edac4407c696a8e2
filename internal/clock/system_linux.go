package clock

import (
	"syscall"
	"unsafe"
)

const clockBoottime = 7 // CLOCK_BOOTTIME, the same on every architecture

// CountsSuspend reports whether System goes on while the machine is suspended.
const CountsSuspend = true

// systemNow makes a real system call, which takes a few hundred nanoseconds. It
// is called once per grant, renewal and validity check, never in a loop.
func systemNow() Instant {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		// CLOCK_BOOTTIME exists since Linux 2.6.39. A fallback to a clock that
		// stands still under suspend would silently break the guarantee.
		panic("leasehold: clock_gettime(CLOCK_BOOTTIME): " + errno.Error())
	}
	return Instant(ts.Nano())
}
