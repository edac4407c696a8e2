package child

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// bind makes the kernel end the process when its parent dies, and puts it into a
// process group of its own, so that Ctrl-C does not reach it.
func bind(attr *syscall.SysProcAttr) *syscall.SysProcAttr {
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	if attr.Pdeathsig == 0 {
		attr.Pdeathsig = syscall.SIGKILL
	}
	attr.Setpgid = true
	return attr
}

// standsStill reports whether the process is stopped. SIGSTOP takes effect a
// little after it was sent.
func standsStill(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	// The line is "pid (name) state ...", and the name may contain any bytes.
	_, rest, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	return len(rest) > 0 && rest[0] == 'T'
}
