//go:build unix

package warden

import (
	"encoding/binary"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// gate is the main function of a gate. It writes a byte before it executes the
// command, and the number of the error if that fails; see Fate.
func gate(args []string) (code int) {
	if len(args) < 5 {
		return codeTrouble
	}
	fd, err := strconv.Atoi(args[1])
	if err != nil {
		return codeTrouble
	}
	unix.CloseOnExec(fd)
	runtime.LockOSThread()
	for _, sig := range parseSignals(args[2]) {
		signal.Ignore(sig)
	}
	var b [1]byte
	for {
		n, err := unix.Read(fd, b[:])
		if err == unix.EINTR {
			continue
		}
		if n != 1 {
			return codeTrouble // nobody is there to guard the command
		}
		break
	}
	unix.Write(fd, b[:])
	err = syscall.Exec(args[3], args[4:], os.Environ())
	errno, ok := err.(syscall.Errno)
	if !ok {
		errno = syscall.EINVAL
	}
	unix.Write(fd, binary.NativeEndian.AppendUint64(nil, uint64(errno)))
	return codeTrouble
}

// Fate reads from the other end of a gate's socket whether the process that was at
// the gate has executed the command, and if not, why, where that is known. It waits until
// the process has executed the command, or has ended.
func Fate(fd int) (executed bool, err error) {
	text := make([]byte, 0, 16)
	for len(text) < cap(text) {
		n, err := unix.Read(fd, text[len(text):cap(text)])
		if err == unix.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			break
		}
		text = text[:len(text)+n]
	}
	if len(text) == 9 {
		return false, syscall.Errno(binary.NativeEndian.Uint64(text[1:]))
	}
	return len(text) == 1, nil
}
