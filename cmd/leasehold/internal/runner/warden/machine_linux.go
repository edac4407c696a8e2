package warden

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// commandFD is the file descriptor by which a guard identifies the command.
const commandFD = 3

// OwnExecutable returns the path of this program, even if its file was replaced or removed since.
func OwnExecutable() (string, error) { return "/proc/self/exe", nil }

// OpenProcess returns a file that stands for a process, whatever becomes of its
// number, or nil on a kernel that has none.
func OpenProcess(pid int) *os.File {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), "command")
}

// killProcess kills the command, even if it has left its group.
func killProcess(pid int) {
	if err := unix.PidfdSendSignal(commandFD, unix.SIGKILL, nil, 0); err == unix.EBADF || err == unix.ENOSYS {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// BootTime is a clock that all processes share and that goes on while the machine
// is suspended.
func BootTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// isStopped reports whether a signal or a debugger has stopped a process.
func isStopped(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	// The state follows the program's name in parentheses, which may hold anything.
	_, after, ok := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	return ok && len(after) > 0 && (after[0] == 'T' || after[0] == 't')
}
