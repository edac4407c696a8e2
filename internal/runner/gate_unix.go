//go:build unix

package runner

import (
	"encoding/binary"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// gateName is the first argument of this program when it runs as the process that
// becomes the command.
const gateName = "leasehold-gate"

// A gate keeps a command from running before it is guarded. The process that
// becomes the command is this program first. It waits at its end of a pair of
// sockets until it is let in, and executes the command then. If we die before,
// it ends.
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
func (g *gate) args(cmd Command) []string {
	return append([]string{gateName, strconv.Itoa(g.theirs), cmd.Path}, cmd.Args...)
}

// passed closes the end that the process at the gate has now.
func (g *gate) passed() { unix.Close(g.theirs) }

func (g *gate) close() { unix.Close(g.ours) }

// open lets the process in, and returns why the command could not be executed.
func (g *gate) open() error {
	if _, err := unix.Write(g.ours, []byte{1}); err != nil {
		return nil // it has ended: how is seen when it is reaped
	}
	var b [8]byte
	for {
		n, err := unix.Read(g.ours, b[:])
		switch {
		case err == unix.EINTR:
		case n == len(b):
			return syscall.Errno(binary.NativeEndian.Uint64(b[:]))
		default:
			return nil // closed, by the execution of the command
		}
	}
}

// becomeCommand is the main function of a process at the gate.
func becomeCommand(args []string) (code int) {
	if len(args) < 4 {
		return CodeTrouble
	}
	fd, err := strconv.Atoi(args[1])
	if err != nil {
		return CodeTrouble
	}
	unix.CloseOnExec(fd)
	runtime.LockOSThread()
	var b [1]byte
	for {
		n, err := unix.Read(fd, b[:])
		if err == unix.EINTR {
			continue
		}
		if n != 1 {
			return CodeTrouble // nobody is there to guard the command
		}
		break
	}
	err = syscall.Exec(args[2], args[3:], os.Environ())
	errno, ok := err.(syscall.Errno)
	if !ok {
		errno = syscall.EINVAL
	}
	unix.Write(fd, binary.NativeEndian.AppendUint64(nil, uint64(errno)))
	return CodeNotExecutable
}
