package servers

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Spin keeps the processor of the calling thread awake. It counts at the lowest
// priority, so that it delays nothing else, until the parent process is gone.
func Spin() error {
	runtime.LockOSThread()
	const schedIdle = 5
	var priority int32
	if _, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, 0, schedIdle, uintptr(unsafe.Pointer(&priority))); errno != 0 {
		return fmt.Errorf("no idle priority: %w", errno)
	}
	parent := os.Getppid()
	for i := 0; ; i++ {
		if i&0xffffff == 0 && os.Getppid() != parent {
			return nil
		}
	}
}
