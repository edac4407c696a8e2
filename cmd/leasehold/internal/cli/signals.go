package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/cli/quit"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/sigaction"
)

// signals are the signals sent to this process. While a command runs they are
// passed on to it. Otherwise those that ask the program to end also end what it
// waits for.
type signals struct {
	ch chan os.Signal

	mu    sync.Mutex
	early []syscall.Signal // fatal to a command that has not begun
}

func newSignals() *signals { return &signals{ch: make(chan os.Signal, 16)} }

func listen() *signals {
	s := newSignals()
	// Caught, and no more: a message that nobody reads must not end us while a
	// command runs under our lease.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signal.Notify(s.ch, runner.Signals()...)
	if ignored := runner.Ignored(); len(ignored) > 0 { // none means all
		signal.Ignore(ignored...)
	}
	quit.Handled()
	return s
}

// stop has signals end the program again: what is left to do can be cut short.
func (s *signals) stop() {
	signal.Stop(s.ch)
	quit.Unhandled()
}

// tellJob sends a signal that was typed, and has ended the command, to the other processes of our
// group, as the terminal would have. While it gives them a moment to take it, we have the pipe to the
// next command open: once that ends well at the end of its input, the shell goes on.
func (s *signals) tellJob(o *runner.Outcome) {
	if !o.Typed || o.Err != nil || !sigaction.Tell(o.Signal) {
		return
	}
	o.Typed = false
	time.Sleep(moment)
	late := time.After(time.Second)
	var others []os.Signal
	for own := false; !own; {
		select {
		case sig := <-s.ch:
			if own = sig == o.Signal; !own {
				others = append(others, sig)
			}
		case <-late:
			own = true
		}
	}
	for _, sig := range others { // they may end the wait of --min-hold
		select {
		case s.ch <- sig:
		default: // there are as many already
		}
	}
}

// moment is long enough for a signal on a busy machine, and too short to be noticed after Ctrl-C.
const moment = 50 * time.Millisecond

// endedBy is the error of a command that sig has ended, or its wait: the program dies of sig.
func endedBy(sig syscall.Signal) error {
	return &exitError{code: runner.SignalCode + int(sig), sig: sig}
}

// wait forgets the signals for a command that would begin at once: there is none yet.
func (s *signals) wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.early = nil
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
			case news := <-s.ch:
				sig, ok := news.(syscall.Signal)
				switch {
				case ok && runner.Ends(sig):
					got = sig
					cancel()
				case ok && runner.Fatal(sig):
					s.mu.Lock()
					s.early = append(s.early, sig)
					s.mu.Unlock()
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
		s.mu.Lock()
		defer s.mu.Unlock()
		if got == 0 && len(s.early) > 0 {
			select {
			case s.ch <- s.early[0]: // as if it had come later
			default: // there are others
			}
		}
		return got
	}
}
