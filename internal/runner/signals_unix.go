//go:build unix

package runner

import (
	"os"
	"os/signal"
	"syscall"
)

// Signals are those to pass on to a command, less those that were ignored when
// we were started: "nohup" and its like must reach the command unchanged.
func Signals() []os.Signal {
	var sigs []os.Signal
	for _, s := range []os.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
	} {
		if !signal.Ignored(s) {
			sigs = append(sigs, s)
		}
	}
	return sigs
}

// Ends says whether sig asks to end the program, as opposed to telling it
// something.
func Ends(sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		return true
	}
	return false
}
