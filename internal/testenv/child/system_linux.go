package child

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// sysProcAttr makes the kernel end the process when we die, and keeps it out of
// our process group, so that Ctrl-C is ours to handle.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// standsStill says whether the process is stopped: the signal is sent at once
// but takes effect a little later.
func standsStill(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	// "pid (name) state ...", and the name may hold anything.
	_, rest, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	return len(rest) > 0 && rest[0] == 'T'
}
