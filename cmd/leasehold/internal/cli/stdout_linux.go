package cli

import (
	"os"
	"syscall"
)

// wasClosed reports whether f, a standard file, was closed when the program started. Go's
// runtime has opened /dev/null in its place then, for reading and writing. Shells open it for
// writing only if somebody means to discard output. Some programs, such as Python, do not:
// theirs counts as closed.
func wasClosed(f *os.File) bool {
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
		return true
	}
	const null = 1<<8 | 3
	if st.Mode&syscall.S_IFMT != syscall.S_IFCHR || st.Rdev != null {
		return false
	}
	flags, _, err := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_GETFL, 0)
	return err == 0 && flags&syscall.O_ACCMODE == syscall.O_RDWR
}
