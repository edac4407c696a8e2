//go:build unix

package sigaction

import (
	"os/signal"
	"slices"
	"syscall"
)

// ignored are those of SIGHUP and SIGINT that were ignored when the program started. Package
// os/signal knows it until the program asks for them.
var ignored = slices.DeleteFunc([]syscall.Signal{syscall.SIGHUP, syscall.SIGINT}, func(sig syscall.Signal) bool { return !signal.Ignored(sig) })

// Ignored returns which of SIGHUP and SIGINT were ignored when the program started, as by
// nohup, or in the background of a script. Of other signals that cannot be known: the
// language's runtime has replaced what it found.
func Ignored() []syscall.Signal { return slices.Clone(ignored) }

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
