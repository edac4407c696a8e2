//go:build unix

package warden

import (
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"syscall"
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
// the command at path then, which ignores those signals.
func GateArgs(fd int, ignored []syscall.Signal, path string, args []string) []string {
	return append([]string{GateName, strconv.Itoa(fd), formatSignals(ignored), path}, args...)
}

// formatSignals returns the numbers of signals in one argument.
func formatSignals(sigs []syscall.Signal) string {
	var words []string
	for _, sig := range sigs {
		words = append(words, strconv.Itoa(int(sig)))
	}
	return strings.Join(words, " ")
}

// parseSignals returns the signals that formatSignals has formatted.
func parseSignals(text string) (sigs []syscall.Signal) {
	for _, word := range strings.Fields(text) {
		if n, err := strconv.Atoi(word); err == nil {
			sigs = append(sigs, syscall.Signal(n))
		}
	}
	return sigs
}

// Message is what a guard is told through its standard input: the end of the lease
// on the clock of BootTime.
func Message(end time.Duration) []byte {
	return binary.NativeEndian.AppendUint64(nil, uint64(end))
}
