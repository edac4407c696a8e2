//go:build unix

package load

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time of this process, user and system.
func CPUTime() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
