package sigaction

import (
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// action is a kernel_sigaction, larger than that of any architecture. All zeros are
// the default action.
type action [8]uintptr

func setAction(sig syscall.Signal, a *action) bool {
	size := uintptr(8) // of a set of signals
	if strings.HasPrefix(runtime.GOARCH, "mips") {
		size = 16
	}
	_, _, err := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(a)), 0, size, 0, 0)
	return err == 0
}

// fatal makes sig end the program when it arrives at this thread.
func fatal(sig syscall.Signal) bool {
	if sig != syscall.SIGKILL && !setAction(sig, &action{}) {
		return false
	}
	var set unix.Sigset_t
	word, bit := place(set.Val[:], sig)
	*word |= bit
	return unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil) == nil
}

// place returns where set has sig.
func place[W uint32 | uint64](set []W, sig syscall.Signal) (word *W, bit W) {
	bits := 8 * int(unsafe.Sizeof(*word))
	i := int(sig) - 1
	return &set[i/bits], 1 << (i % bits)
}

// noCore also keeps a program that handles core dumps from getting one.
func noCore() {
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}
