//go:build unix

package runner

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner/warden"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/sigaction"
)

// A gate keeps a command from running before it is guarded. The process that
// becomes the command is this program first. It waits at its end of a pair of
// sockets until it is let in, and executes the command then. If we die before,
// it ends.
//
// Nobody waits for it to execute the command: a signal may have stopped it, and
// the lease may end meanwhile. But until then nothing is passed on to it: Go's runtime
// has its own ways with signals.
type gate struct {
	ours, theirs int

	done     chan struct{} // closed when the fields below are set
	executed bool
	err      error // why not, if that is known
}

// firstFree is a descriptor above those that a command inherits.
const firstFree = 8

func newGate() (*gate, error) {
	// Another process that starts meanwhile, such as one that gets credentials, must not have the ends: we
	// would wait for it.
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, err
	}
	if fds[1] < firstFree { // the process at the gate has others by these numbers
		fd, err := unix.FcntlInt(uintptr(fds[1]), unix.F_DUPFD_CLOEXEC, firstFree)
		unix.Close(fds[1])
		if err != nil {
			unix.Close(fds[0])
			return nil, err
		}
		fds[1] = fd
	}
	return &gate{ours: fds[0], theirs: fds[1], done: make(chan struct{})}, nil
}

// files returns the files of the process at the gate: those given, others that it inherits from us, and its end.
func (g *gate) files(given []uintptr) []uintptr {
	all := slices.Clone(given)
	for fd := len(all); fd < g.theirs; fd++ {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			all = append(all, uintptr(fd))
		} else {
			all = append(all, ^uintptr(0)) // none
		}
	}
	return append(all, uintptr(g.theirs))
}

// args are those of the process at the gate.
func (g *gate) args(cmd Command) []string {
	return warden.GateArgs(g.theirs, sigaction.Ignored(), cmd.Path, cmd.Args)
}

// passed closes the end that the process at the gate has now.
func (g *gate) passed() { unix.Close(g.theirs) }

func (g *gate) close() { unix.Close(g.ours) }

// open lets the process in. If it has ended already, that is seen when it is reaped.
func (g *gate) open() {
	unix.Write(g.ours, []byte{1})
	go func() {
		defer close(g.done)
		g.executed, g.err = warden.Fate(g.ours)
		g.close()
	}()
}

// failure returns why the process, which has ended as e says, never executed the
// command, or nil if it did. A process that a signal ended counts as the command:
// the signal was meant for that.
func (g *gate) failure(e exit) error {
	<-g.done
	if g.err == nil && !g.executed && e.signal == 0 {
		return errNotExecuted
	}
	return g.err
}
