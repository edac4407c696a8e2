//go:build unix

package runner

import (
	"golang.org/x/sys/unix"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner/warden"
)

// A gate keeps a command from running before it is guarded. The process that
// becomes the command is this program first. It waits at its end of a pair of
// sockets until it is let in, and executes the command then. If we die before,
// it ends.
//
// Nobody waits for it to execute the command: a signal may have stopped it, and
// the lease may end meanwhile. Whether it did is asked when the process has ended.
type gate struct{ ours, theirs int }

func newGate() (*gate, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(fds[0])
	return &gate{ours: fds[0], theirs: fds[1]}, nil
}

// args are those of the process at the gate.
func (g *gate) args(cmd Command) []string { return warden.GateArgs(g.theirs, cmd.Path, cmd.Args) }

// passed closes the end that the process at the gate has now.
func (g *gate) passed() { unix.Close(g.theirs) }

func (g *gate) close() { unix.Close(g.ours) }

// open lets the process in. If it has ended already, that is seen when it is reaped.
func (g *gate) open() { unix.Write(g.ours, []byte{1}) }

// failure returns why the process, which has ended as e says, never executed the
// command, or nil if it did. A process that a signal ended counts as the command:
// the signal was meant for that.
func (g *gate) failure(e exit) error {
	executed, err := warden.Fate(g.ours)
	g.close()
	if err == nil && !executed && e.signal == 0 {
		err = errNotExecuted
	}
	return err
}
