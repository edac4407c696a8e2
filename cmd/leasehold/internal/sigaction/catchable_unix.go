//go:build unix

package sigaction

import (
	"os/signal"
	"syscall"
)

// Known holds of SIGHUP and SIGINT whether they were ignored when the program started, which
// package os/signal knows until the program asks for them.
var Known = map[syscall.Signal]bool{syscall.SIGHUP: signal.Ignored(syscall.SIGHUP), syscall.SIGINT: signal.Ignored(syscall.SIGINT)}

// Catchable are all signals that can be caught, less those that mean something to us alone
// (SIGCHLD, SIGPIPE, and SIGURG and SIGPROF, which the language's runtime uses), and those
// of job control.
func Catchable() []syscall.Signal {
	return append([]syscall.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGALRM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGIO, syscall.SIGVTALRM,
		syscall.SIGXCPU, syscall.SIGXFSZ, syscall.SIGSYS, syscall.SIGTRAP,
		// Caught if another process sends them. Faults of our own end us as before, and on
		// macOS every SIGSEGV counts as one.
		syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL,
	}, furtherSignals()...)
}
