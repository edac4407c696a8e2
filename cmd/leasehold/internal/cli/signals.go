package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/cli/quit"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner"
)

// signals are the signals sent to this process. While a command runs they are
// passed on to it. Otherwise those that ask the program to end also end what it
// waits for.
type signals struct{ ch chan os.Signal }

func newSignals() *signals { return &signals{ch: make(chan os.Signal, 16)} }

func listen() *signals {
	s := newSignals()
	signal.Notify(s.ch, runner.Signals()...)
	quit.Handled()
	// Caught, and no more: a message that nobody reads must not end us while a
	// command runs under our lease.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return s
}

// during returns a context that ends with the first signal that asks to end.
// stop must be called when the wait is over; it returns that signal, or zero.
func (s *signals) during(ctx context.Context) (_ context.Context, stop func() syscall.Signal) {
	ctx, cancel := context.WithCancel(ctx)
	quit, ended := make(chan struct{}), make(chan struct{})
	var got syscall.Signal
	go func() {
		defer close(ended)
		for got == 0 {
			select {
			case sig := <-s.ch:
				if sig, ok := sig.(syscall.Signal); ok && runner.Ends(sig) {
					got = sig
					cancel()
				}
			case <-quit:
				return
			}
		}
	}()
	return ctx, func() syscall.Signal {
		close(quit)
		<-ended
		cancel()
		return got
	}
}
