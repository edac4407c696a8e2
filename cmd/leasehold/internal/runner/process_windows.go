package runner

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// Windows gives weaker guarantees: there is no signal that asks a program to stop, so
// a command whose lease is lost is not notified, only ended when its grace is over;
// only the command itself is ended, not what it has started; and it goes on if
// we are ended by force. Ctrl-C reaches it by the console that it shares with us.

type process struct {
	pid     int
	p       *os.Process
	changes <-chan change
}

func isFormat(err error) bool {
	const badExeFormat = syscall.Errno(193)
	return errors.Is(err, badExeFormat)
}

func start(cmd Command, _ *terminal, _ time.Duration) (*process, *StartError) {
	p, err := os.StartProcess(cmd.Path, cmd.Args, &os.ProcAttr{Env: cmd.Env, Files: []*os.File{cmd.Stdin, cmd.Stdout, cmd.Stderr}})
	if err != nil {
		return nil, startError(cmd.Args[0], err)
	}
	changes := make(chan change, 1)
	go func() {
		state, err := p.Wait()
		code := CodeTrouble
		if err == nil {
			code = state.ExitCode()
		}
		changes <- change{exit: &exit{code: code}}
	}()
	return &process{pid: p.Pid, p: p, changes: changes}, nil
}

func (p *process) signal(syscall.Signal) error { return nil }
func (p *process) signalOne(syscall.Signal)    {}
func (p *process) begun() <-chan struct{}      { return closed }
func (p *process) goOn(syscall.Signal)         {}
func (p *process) terminate() error            { return errors.ErrUnsupported }
func (p *process) groupAlive() bool            { return false }
func (p *process) extend(time.Duration)        {}
func (p *process) dismiss() <-chan struct{}    { return nil }

func (p *process) kill() error {
	if err := p.p.Kill(); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Signals are those that would otherwise end us before the command.
func Signals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// Ignored returns nil.
func Ignored() []os.Signal { return nil }

// Ends reports whether sig asks the program to end.
func Ends(sig syscall.Signal) bool { return sig == syscall.SIGINT || sig == syscall.SIGTERM }

// Fatal reports whether sig, one of Signals, ends a program that does not handle it.
func Fatal(sig syscall.Signal) bool { return true }

// HasTerminal returns false: a console sends no SIGHUP.
func HasTerminal() bool { return false }

// terminal: there is no job control to take part in.
type terminal struct{}

func openTerminal(*os.File) *terminal       { return nil }
func (*terminal) close()                    {}
func (*terminal) watch(int)                 {}
func (*terminal) signals() <-chan os.Signal { return nil }
func (*terminal) told(os.Signal)            {}
func (*terminal) stopped(syscall.Signal)    {}
func (*terminal) resume(bool) time.Duration { return time.Hour }
func (*terminal) killed()                   {}
func (*terminal) typed(syscall.Signal) bool { return false }
func (*terminal) had() bool                 { return false }
