//go:build unix

package runner

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner/warden"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/sigaction"
)

// terminal is the controlling terminal of our session. The command runs in a
// process group of its own, which the shell that started us does not know as part
// of the job. This type makes it behave like one. The command's group is in the
// foreground: it may read from the terminal, and Ctrl-C and Ctrl-Z reach it. When
// the command stops we stop too, so that the shell sees its job stopped, and when
// we are continued we continue it.
//
// Without a terminal (fd is -1), only this remains: a SIGTSTP sent to us also
// stops the command.
type terminal struct {
	fd    int  // -1: there is none
	own   int  // our group
	stdin bool // the command's input is a terminal too
	state *term.State
	sigs  chan os.Signal

	child    int  // the command's group, 0 before it runs
	given    bool // the terminal was given to it
	asked    bool // it was sent SIGTSTP by us
	paused   bool // it is stopped, and so are we, or will be
	resumeAt time.Time
	restore  bool // it was killed, and could not tidy up
}

// openTerminal opens the controlling terminal, if there is one.
func openTerminal(stdin *os.File) *terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	t := &terminal{fd: fd, own: unix.Getpgrp(), sigs: make(chan os.Signal, 4)}
	if err != nil {
		t.fd = -1
	} else {
		t.stdin = term.IsTerminal(int(stdin.Fd()))
		t.state, _ = term.GetState(fd) // nil: nothing to restore
	}
	// From before the command starts: a Ctrl-Z that stopped only us would let
	// it run on with nobody to renew the lease.
	t.listen(syscall.SIGCONT)
	t.listen(syscall.SIGTSTP)
	if t.fd < 0 {
		t.listen(syscall.SIGTTOU) // means the same then
	}
	return t
}

// HasTerminal reports whether this process has a controlling terminal.
func HasTerminal() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// listen has sig sent to t.sigs, unless it was ignored when we were started: the command
// ignores it then.
func (t *terminal) listen(sig syscall.Signal) {
	if sig == syscall.SIGCONT || !slices.Contains(sigaction.Ignored(), sig) {
		signal.Notify(t.sigs, sig)
	}
}

// typed reports whether sig, which we have received, may come from the keyboard: then the
// terminal has sent it to every process of our group, or another leasehold of our job has,
// whose command had the terminal (see Outcome.Typed), and it is for the command's group too.
func (t *terminal) typed(sig syscall.Signal) bool {
	return (sig == syscall.SIGINT || sig == syscall.SIGQUIT || sig == syscall.SIGWINCH) && t.fd >= 0 && t.inJob(t.holder())
}

// had reports whether the command was given the terminal. Another command of our job may have
// taken it since.
func (t *terminal) had() bool { return t.given }

// watch begins to take part in job control for the command, which runs. Only
// now, because it would have inherited that we ignore a signal.
func (t *terminal) watch(child int) {
	t.child = child
	if t.fd >= 0 {
		signal.Ignore(syscall.SIGTTOU) // or taking the terminal back would stop us
	}
}

// close takes the terminal back for the program that runs after us.
func (t *terminal) close() {
	if t.fd >= 0 {
		signal.Ignore(syscall.SIGTTOU)
		t.take()
		if t.restore && t.state != nil && t.ours() {
			term.Restore(t.fd, t.state)
		}
		unix.Close(t.fd)
	}
	signal.Reset(syscall.SIGTTOU, syscall.SIGTSTP, syscall.SIGCONT)
}

func (t *terminal) signals() <-chan os.Signal { return t.sigs }

// ours reports whether our group is in the foreground.
func (t *terminal) ours() bool { return t.holder() == t.own }

// holder returns the foreground group, or 0 if that cannot be found out.
func (t *terminal) holder() int {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// inJob reports whether that group is part of our job, as a shell sees it: it is our group,
// that of our command, or that of a command of another leasehold in the same pipeline. The
// leader of the last has a process of our group as an ancestor. A group that has ended counts
// as part, since nobody needs the terminal there.
func (t *terminal) inJob(group int) bool {
	switch group {
	case 0:
		return false
	case t.own, t.child:
		return true
	}
	// The first process of a container has parent 0, as has one that was sent into it.
	for pid, depth := warden.Parent(group), 0; pid > 1 && depth < 100; pid, depth = warden.Parent(pid), depth+1 {
		if of, err := unix.Getpgid(pid); err == nil && of == t.own {
			return true
		}
	}
	// Last, since the group may have ended while its leader was looked up.
	return syscall.Kill(-group, 0) == syscall.ESRCH
}

func (t *terminal) give() {
	t.given = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, t.child) == nil
}

// take takes the terminal back from the command or from a group that has ended,
// and from no other: by now it may be the shell's.
func (t *terminal) take() {
	if !t.given {
		return
	}
	h := t.holder()
	if h != 0 && (h == t.child || syscall.Kill(-h, 0) == syscall.ESRCH) {
		unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, t.own)
	}
	t.given = false
}

// stopped handles a stop of the command.
func (t *terminal) stopped(sig syscall.Signal) {
	switch {
	case t.fd < 0:
		if t.asked {
			t.pause()
		}
	case sig == syscall.SIGTSTP:
		t.pause()
	case sig == syscall.SIGTTIN, sig == syscall.SIGTTOU:
		// The command wanted the terminal. If we have the terminal, we give it away: a
		// command whose input is a pipe asks the user something in this way. A command
		// that has the terminal did not want it: another leasehold stops itself with
		// these signals.
		t.stdin = true
		switch h := t.holder(); {
		case h == t.own:
			t.resumeNow()
		case h != t.child && t.inJob(h):
			// Another leasehold of the same pipeline gave its command the terminal. Our
			// command asks again with the same signal. The pause gives the other one time.
			t.paused, t.resumeAt = true, time.Now().Add(20*time.Millisecond)
		default:
			t.pause()
		}
	}
	// SIGSTOP was meant for the command alone.
}

// pause stops our own group, us included, as the terminal would have, had it
// known the command to be part of it. Where nobody could continue us the
// system does not stop us, and the command goes on shortly.
//
// pause sends SIGTTIN, whatever signal stopped the command: SIGTSTP is caught, and Go's runtime
// cannot restore the default action, which stops the process.
func (t *terminal) pause() {
	t.take()
	t.paused, t.resumeAt = true, time.Now().Add(200*time.Millisecond)
	group := 0
	if t.fd < 0 {
		group = os.Getpid() // our group may be everybody's
	}
	syscall.Kill(group, syscall.SIGTTIN)
}

// told handles a job-control signal that was sent to us.
func (t *terminal) told(s os.Signal) {
	switch s {
	case syscall.SIGTSTP, syscall.SIGTTOU:
		t.asked = true
		syscall.Kill(-t.child, syscall.SIGTSTP)
	case syscall.SIGCONT:
		t.resumeNow()
	}
}

// resumeNow makes resume continue the command at once.
func (t *terminal) resumeNow() { t.paused, t.resumeAt = true, time.Now() }

// resume continues the command when it is time, unless the lease may have been
// lost while we were stopped. It returns how long to wait before the next call.
func (t *terminal) resume(may bool) time.Duration {
	if !t.paused {
		return time.Hour
	}
	if wait := time.Until(t.resumeAt); wait > 0 {
		return wait
	}
	t.paused, t.asked = false, false
	if may {
		if t.stdin && t.inJob(t.holder()) {
			t.give()
		}
		syscall.Kill(-t.child, syscall.SIGCONT)
	}
	return time.Hour
}

// killed records that a signal ended the command, which then may not have
// restored the terminal.
func (t *terminal) killed() { t.restore = true }
