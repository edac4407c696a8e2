//go:build unix

package runner

import (
	"os"
	"slices"
	"syscall"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/sigaction"
)

// Signals are those to pass on to a command: all that can be caught, less those
// that were ignored when we were started ("nohup" and its like must reach the
// command unchanged: see Ignored).
func Signals() (sigs []os.Signal) {
	for _, s := range sigaction.Catchable() {
		if !slices.Contains(sigaction.Ignored(), s) {
			sigs = append(sigs, s)
		}
	}
	return sigs
}

// Ignored are the signals that were ignored when we were started, and that we have to go on
// ignoring, as the command does.
func Ignored() (sigs []os.Signal) {
	for _, s := range sigaction.Ignored() {
		sigs = append(sigs, s)
	}
	return sigs
}

// Ends reports whether sig asks the program to end.
func Ends(sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGALRM, syscall.SIGXCPU,
		syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL:
		return true
	}
	return false
}

// Fatal reports whether sig, one of Signals, ends a program that does not handle it.
func Fatal(sig syscall.Signal) bool { return sig != syscall.SIGWINCH }
