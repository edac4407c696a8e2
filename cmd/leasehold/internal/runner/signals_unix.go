//go:build unix

package runner

import (
	"os"
	"os/signal"
	"syscall"
)

// Signals are those to pass on to a command: all that can be caught, less those
// that were ignored when we were started ("nohup" and its like must reach the
// command unchanged), that mean something to us alone (SIGCHLD, SIGPIPE, and
// SIGURG and SIGPROF, which the language's runtime uses), or that
// job control handles (see terminal).
func Signals() []os.Signal {
	var sigs []os.Signal
	for _, s := range append([]syscall.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGALRM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGIO, syscall.SIGVTALRM,
		syscall.SIGXCPU, syscall.SIGXFSZ, syscall.SIGSYS, syscall.SIGTRAP,
		// Caught if another process sends them. Faults of our own end us as before, and on
		// macOS every SIGSEGV counts as one.
		syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL,
	}, furtherSignals()...) {
		if !signal.Ignored(s) {
			sigs = append(sigs, s)
		}
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
