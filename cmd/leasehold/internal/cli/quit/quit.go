// Package quit ends the program on SIGQUIT (Ctrl-\) until it handles the signal itself.
// Otherwise Go's runtime would print the stacks of all goroutines.
//
// It does so from its initialization on, which comes before that of the stores: the
// program's main package imports it, and it needs few other packages.
package quit

import (
	"os"
	"os/signal"
	"syscall"
)

// code is how a shell reports a program that SIGQUIT ended.
const code = 128 + int(syscall.SIGQUIT)

var caught = make(chan os.Signal, 1)

func init() {
	if signal.Ignored(syscall.SIGQUIT) {
		return
	}
	signal.Notify(caught, syscall.SIGQUIT)
	go func() {
		<-caught
		os.Exit(code)
	}()
}

// Handled says that the caller handles the signal from now on.
func Handled() { signal.Stop(caught) }
