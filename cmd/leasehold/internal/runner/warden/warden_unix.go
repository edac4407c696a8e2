//go:build unix

package warden

import (
	"encoding/binary"
	"os"
	"strconv"
	"time"
)

// The names of the helpers, which they have in place of a program's name. The
// first argument of a guard is the command's pid.
const (
	GuardName = "leasehold-guard"
	GateName  = "leasehold-gate"
)

// codeTrouble is a helper's exit code if it cannot do its work.
const codeTrouble = 125

func init() {
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[0] {
	case GuardName:
		os.Exit(guard(os.Args))
	case GateName:
		os.Exit(gate(os.Args))
	}
}

// GuardArgs are the arguments of a guard of the command pid.
func GuardArgs(pid int) []string { return []string{GuardName, strconv.Itoa(pid)} }

// GateArgs are the arguments of a gate that waits at the socket fd and becomes
// the command at path then.
func GateArgs(fd int, path string, args []string) []string {
	return append([]string{GateName, strconv.Itoa(fd), path}, args...)
}

// Message is what a guard is told through its standard input: the end of the lease
// on the clock of BootTime.
func Message(end time.Duration) []byte {
	return binary.NativeEndian.AppendUint64(nil, uint64(end))
}
