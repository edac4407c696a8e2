package child

import (
	"os"
	"os/signal"
	"syscall"
)

// DefaultSignals gives the processes that are started from now on the default action of
// SIGHUP and SIGINT. A program started with nohup, or in the background of a script,
// ignores one of them, and so do its children, unless they decide otherwise. A test that
// sends these signals to a child calls DefaultSignals first. The calling process still
// ignores what it ignored.
func DefaultSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			// A signal that is caught becomes the default again in a child.
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
