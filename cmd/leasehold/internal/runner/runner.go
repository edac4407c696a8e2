// Package runner runs a command for as long as a lease allows, and not longer.
// It passes signals and the terminal through as if it were not there, tells the
// command when the lease is lost, and has ended it when validity ends. What a
// lock is, and where it is kept, it does not know.
package runner

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// Exit codes that are not the command's own. The code of a command ended by signal
// n is SignalCode + n.
const (
	CodeLost          = 123 // the lease was lost; the command was stopped
	CodeTrouble       = 125 // nothing is known of the command
	CodeNotExecutable = 126 // the command was found and cannot be run
	CodeNotFound      = 127 // there is no such command
	SignalCode        = 128
)

// Lease is what a runner needs to know about a lease.
type Lease interface {
	// Done is closed when the lease is over.
	Done() <-chan struct{}
	// Err returns why the lease is over, or nil while it is valid. It reads the
	// clock.
	Err() error
	// Deadline returns the current end of validity. It is called again whenever
	// it matters, because the machine may have been suspended.
	Deadline() time.Time
}

// Command is what to run. Resolve finds its Path.
type Command struct {
	Path string   // of the executable
	Args []string // with the command's own name first
	Env  []string // "KEY=value", complete
	// The command gets these very files; nothing is copied.
	Stdin, Stdout, Stderr *os.File
	// Tether is a file that the command inherits as its fourth, or nil. While the command has it
	// open, the lock is not taken for that of a process that has ended.
	Tether *os.File
}

// Config says how to run a command.
type Config struct {
	Lease  Lease
	Budget Budget
	// Signals are passed on to the command. The function Signals returns which
	// ones to subscribe to.
	Signals <-chan os.Signal
	// Report is called with messages for people. It must not block: an unread
	// pipe must not keep a command alive. It may be nil.
	Report func(msg string)
}

// Outcome is how a command ended.
type Outcome struct {
	// Code to exit with.
	Code int
	// Started reports whether the command ran at all.
	Started bool
	// Err is why Code is not the command's own, or nil if it is. It is a
	// *StartError, or the lease's error if the lease was lost, even if the
	// command ended by itself at the same moment.
	Err error
	// Signal is what ended the command, or kept it from being started. The caller dies of it
	// (see package sigaction), so that its own parent sees what ended the command.
	Signal syscall.Signal
	// Typed reports that Signal came from the keyboard of a terminal that the command had, as
	// far as we can tell: without us, our whole process group would have received it.
	Typed bool

	guard <-chan struct{} // see Reap
}

// Run starts cmd and returns when it has ended and, if the lease was lost, when
// every process of its group has. One call at a time may run in a process: signal
// handling and the terminal belong to the whole process.
//
// While the lease holds, Run waits only for the command itself. Processes that it
// left in the background go on without the lease.
func Run(cmd Command, c Config) Outcome {
	if sig := endBeforeStart(c.Signals); sig != 0 {
		return Outcome{Code: SignalCode + int(sig), Signal: sig}
	}
	if c.Report == nil {
		c.Report = func(string) {}
	}
	tty := openTerminal(cmd.Stdin)
	defer tty.close()
	if err := c.Lease.Err(); err != nil {
		c.Report(fmt.Sprintf("%v: the command was not started", err))
		return Outcome{Code: CodeLost, Err: err}
	}
	proc, err := start(cmd, tty, time.Until(c.Lease.Deadline()))
	if err != nil {
		return Outcome{Code: err.Code, Err: err}
	}
	tty.watch(proc.pid)
	r := run{Config: c, name: cmd.Args[0], proc: proc, tty: tty, begun: proc.begun()}
	o := r.loop()
	o.guard = proc.dismiss()
	return o
}

// Reap waits, for a short time at most, until the process that guarded the
// command has ended. Call it when nothing urgent is left: not every first process
// of a machine or a container reaps orphans.
func (o Outcome) Reap() {
	if o.guard != nil {
		select {
		case <-o.guard:
		case <-time.After(time.Second):
		}
	}
}

// endBeforeStart returns a signal that arrived after the lease was granted and would have
// ended the command, or zero.
func endBeforeStart(signals <-chan os.Signal) syscall.Signal {
	for {
		select {
		case s := <-signals:
			if sig, ok := s.(syscall.Signal); ok && Fatal(sig) {
				return sig
			}
		default:
			return 0
		}
	}
}

// run is one running command.
type run struct {
	Config
	name string // of the command
	proc *process
	tty  *terminal

	phase   phase
	entered time.Time // the phase
	lost    error
	exit    *exit                   // nil while the command runs
	stuck   bool                    // it was reported that the command cannot be killed, or is not gone
	passed  map[syscall.Signal]bool // to the command alone
	begun   <-chan struct{}         // nil when the command was executed: signals are passed on then
	early   []os.Signal             // those that wait for that
}

func (r *run) loop() Outcome {
	over := r.Lease.Done()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		v := r.look()
		was := r.phase
		if r.phase = r.phase.next(v, r.Budget); r.phase != was {
			r.entered = time.Now()
			r.enter(was, v)
		}
		if r.phase == done {
			return r.outcome()
		}
		r.insist(v.exited)
		// A lost lease is dealt with before a stopped command may go on.
		nap := min(r.phase.nap(v, r.Budget), r.tty.resume(r.lost == nil), r.reassure())
		timer.Reset(nap)
		select {
		case c := <-r.proc.changes:
			switch {
			case c.exit != nil:
				r.exit = c.exit
			case r.phase == told:
				r.proc.goOn(c.stop) // it has something to do, and not long for it
			default:
				r.tty.stopped(c.stop)
			}
		case s := <-r.Signals:
			if r.begun != nil {
				r.early = append(r.early, s)
			} else {
				r.pass(s)
			}
		case <-r.begun:
			r.begun = nil
			for _, s := range r.early {
				r.pass(s)
			}
		case s := <-r.tty.signals():
			r.tty.told(s)
		case <-over:
			over = nil
		case <-timer.C:
		}
	}
}

// look returns the current view.
func (r *run) look() view {
	if r.lost == nil {
		r.lost = r.Lease.Err()
	}
	v := view{exited: r.exit != nil, lost: r.lost != nil, since: time.Since(r.entered)}
	if v.lost {
		v.left = time.Until(r.Lease.Deadline())
		v.alone = v.exited && !r.proc.groupAlive()
	}
	return v
}

// enter does what the new phase requires. It sends signals before it reports.
func (r *run) enter(was phase, v view) {
	switch {
	case r.phase == told:
		how := "was told to stop"
		if err := r.proc.terminate(); err != nil {
			how = fmt.Sprintf("cannot be told to stop (%v)", err)
		}
		rest := min(r.Budget.Grace, v.left-r.Budget.Slack).Round(time.Millisecond)
		r.Report(fmt.Sprintf("%v: the command %s, and will be killed in %v", r.lost, how, rest))
	case r.phase == killing:
		why := r.lost.Error()
		if was == told {
			why = "the command did not stop in time"
		}
		if err := r.proc.kill(); err != nil {
			r.stuck = true
			r.Report(fmt.Sprintf("%s: it cannot be killed (%v), and may go on without the lock; waiting for it to end", why, err))
		} else if was == told {
			r.Report(why + ": killed")
		} else {
			r.Report(why + ": the command was killed")
		}
	case r.phase == done && was == running && v.lost:
		r.Report(fmt.Sprintf("%v: the command had just ended", r.lost))
	case r.phase == done && was == killing && !v.alone:
		r.Report("processes that the command started were killed, and are not gone yet")
	}
}

// insist kills a command again that was not gone when it was killed: it may have
// got a user back whom we may kill. If it does not go, insist says so, once.
func (r *run) insist(exited bool) {
	if r.phase != killing || exited {
		return
	}
	if err := r.proc.kill(); err == nil && !r.stuck && time.Since(r.entered) > time.Second {
		r.stuck = true
		r.Report("the command was killed and is not gone yet: waiting for it to end")
	}
}

// reassure tells the guard how long the lease is valid, and returns when to tell it
// again.
func (r *run) reassure() time.Duration {
	if r.lost != nil {
		return time.Hour
	}
	left := time.Until(r.Lease.Deadline())
	r.proc.extend(left)
	return max(left/4, 20*time.Millisecond)
}

// closed is a closed channel.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// pass passes a signal on to the command: to it alone, since what it has started may not
// handle the signal. What comes from the keyboard is for its whole group.
func (r *run) pass(s os.Signal) {
	sig, ok := s.(syscall.Signal)
	switch {
	case !ok || r.exit != nil:
	case r.tty.typed(sig):
		r.proc.signal(sig)
	default:
		if r.passed == nil {
			r.passed = map[syscall.Signal]bool{}
		}
		r.passed[sig] = true
		r.proc.signalOne(sig)
	}
}

// died notes that a signal has ended the command. If we had passed it on, it may have been
// sent to our whole group, as "timeout" and shells do, and nobody is left who could tell the
// processes that the command has started.
func (r *run) died(o *Outcome) {
	o.Code = SignalCode + int(o.Signal)
	if r.passed[o.Signal] {
		r.proc.signal(o.Signal)
	} else {
		o.Typed = (o.Signal == syscall.SIGINT || o.Signal == syscall.SIGQUIT) && r.tty.had()
	}
	r.tty.killed()
}

func (r *run) outcome() Outcome {
	if r.exit.failed != nil {
		err := startError(r.name, r.exit.failed)
		return Outcome{Code: err.Code, Err: err}
	}
	o := Outcome{Started: true, Code: r.exit.code, Signal: r.exit.signal}
	if o.Signal != 0 {
		r.died(&o)
	}
	if r.lost != nil {
		o.Code, o.Err = CodeLost, r.lost
	}
	return o
}

// exit is how a command ended: with a code, or by a signal.
type exit struct {
	code   int
	signal syscall.Signal
	failed error // why the process never became the command, or nil
}

// change is news about the command: it ended, or a signal stopped it.
type change struct {
	exit *exit
	stop syscall.Signal
}
