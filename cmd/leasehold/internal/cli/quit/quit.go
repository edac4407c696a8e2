// Package quit ends the program by the signals that end a program, until it handles them
// itself. Go's runtime would print the stacks of all goroutines for some, such as SIGQUIT
// (Ctrl-\), and would ignore others.
//
// It does so from its initialization on, which comes before that of the stores: the
// program's main package imports it, and it needs few other packages.
package quit

import (
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/sigaction"
)

var caught = make(chan os.Signal, 1)

func init() {
	Unhandled()
	go func() {
		for s := range caught {
			if sig := s.(syscall.Signal); sig != winch {
				sigaction.Die(sig, false)
				os.Exit(128 + int(sig)) // as a shell reports it
			}
		}
	}()
}

// winch is SIGWINCH, which ends no program. Windows has none.
const winch = syscall.Signal(28)

// Handled says that the caller handles the signals from now on.
func Handled() { signal.Stop(caught) }

// Unhandled says that the caller does not handle the signals any more.
func Unhandled() {
	var all []os.Signal
	for _, sig := range sigaction.Catchable() {
		if !slices.Contains(sigaction.Ignored(), sig) { // or it would not be ignored any more
			all = append(all, sig)
		}
	}
	signal.Notify(caught, all...)
}
