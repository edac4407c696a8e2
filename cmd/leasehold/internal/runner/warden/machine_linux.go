package warden

import (
	"bytes"
	"os"
	"strconv"
	"strings"
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
	stat := statOf(pid)
	return len(stat) > 0 && (stat[0] == "T" || stat[0] == "t")
}

// Parent returns the pid of a process's parent, or 0 if it is unknown.
func Parent(pid int) int {
	stat := statOf(pid)
	if len(stat) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(stat[1])
	return parent
}

// statOf returns what the kernel says of a process, from its state on.
func statOf(pid int) []string {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	// The state follows the program's name in parentheses, which may hold anything.
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
}
