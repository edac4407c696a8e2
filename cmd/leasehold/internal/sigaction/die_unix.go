//go:build unix

package sigaction

import (
	"os"
	"runtime"
	"syscall"
	"time"
)

// Die ends the program by sig, as if the program did not catch it, so that its parent sees
// death by a signal. A shell then ends its script or loop. It would go on after an exit
// code of 130. It leaves no core dump. With group it sends sig to the other
// processes of our group as well, as a terminal does.
//
// It returns if that is impossible: the caller exits with a code then.
func Die(sig syscall.Signal, group bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	noCore()
	if !fatal(sig) {
		return
	}
	target := os.Getpid()
	if group {
		target = 0
	}
	if syscall.Kill(target, sig) == nil {
		time.Sleep(time.Second) // another thread may have to take it
	}
}

// Tell sends sig to all processes of our group, this one included, as a terminal does. It reports
// whether it has.
func Tell(sig syscall.Signal) bool { return syscall.Kill(0, sig) == nil }
