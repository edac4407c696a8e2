package clock

import (
	"syscall"
	"time"
	"unsafe"
)

// CountsSuspend reports whether System goes on while the machine is suspended.
const CountsSuspend = true

var system = calculator{read: readCheapClocks, boottime: readBoottime}

func systemNow() Instant { return system.now() }

var processStart = time.Now()

// readCheapClocks reads the clocks that Go reads without a system call. In a bubble of
// testing/synctest, Go returns a fake time of day without a reading of CLOCK_MONOTONIC, which
// Round would strip.
func readCheapClocks() (mono, wall int64, fake bool) {
	t := time.Now()
	return int64(t.Sub(processStart)), t.UnixNano(), t == t.Round(0)
}

// readBoottime reads CLOCK_BOOTTIME by a system call.
func readBoottime() int64 {
	const clockBoottime = 7 // the same on every architecture
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		// CLOCK_BOOTTIME exists since Linux 2.6.39. A fallback to a clock that
		// stands still under suspend would silently break the guarantee.
		panic("leasehold: clock_gettime(CLOCK_BOOTTIME): " + errno.Error())
	}
	return ts.Nano()
}
