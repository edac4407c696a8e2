package servers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor times in /proc, the same on every Linux.
const tick = 10 * time.Millisecond

// CPU returns the processor time of a process and its children, to 10 ms each. It works
// on Linux.
func CPU(pid int) (time.Duration, error) {
	all, err := cpu(pid)
	if err != nil {
		return 0, err
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return 0, err
	}
	for _, path := range threads {
		children, _ := os.ReadFile(path) // the thread may have ended
		for child := range strings.FieldsSeq(string(children)) {
			n, err := strconv.Atoi(child)
			if err != nil {
				return 0, err
			}
			if one, err := cpu(n); err == nil { // it may have ended
				all += one
			}
		}
	}
	return all, nil
}

// cpu returns the processor time of a process and of the children that it has waited for.
func cpu(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// "pid (name) state ...", and the name may hold anything; the 14th to 17th field are
	// user and system time, and those of children.
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const first, last = 11, 15
	if len(f) < last {
		return 0, fmt.Errorf("unreadable /proc/%d/stat", pid)
	}
	var sum int64
	for _, field := range f[first:last] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return time.Duration(sum) * tick, nil
}
