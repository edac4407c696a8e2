//go:build unix

package runner

import (
	"encoding/binary"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// guardName is the first argument of a guard, in place of a program's name.
const guardName = "leasehold-guard"

// guard is a process that kills the command and its group if this process dies
// without a chance to do so, or is stopped past the end of the lease. The
// kernel's death signal is not enough: a command that changes its user loses it,
// it does not reach what the command has started, and a stopped process is not
// dead.
//
// The guard is this program again, started beside the command in a session of its
// own, so that signals to our group or terminal do not reach it. A pipe tells it
// when the lease ends. When the pipe is closed, it knows that this process is
// dead.
//
// A nil *guard guards nothing.
type guard struct {
	pipe *os.File
	gone chan struct{} // closed when it was reaped
}

// dismissed is what the guard is sent when there is nothing left to guard.
const dismissed = 0

// newGuard starts a guard for the command pid, which must not be reaped
// meanwhile. If it fails, only the kernel's death signal remains.
func newGuard(pid int) *guard {
	self, err := ownExecutable()
	if err != nil {
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		w.Close()
		return nil
	}
	defer null.Close()
	files := []*os.File{r, null, null}
	if f := openProcess(pid); f != nil {
		defer f.Close()
		files = append(files, f)
	}
	proc, err := os.StartProcess(self, []string{guardName, strconv.Itoa(pid)}, &os.ProcAttr{
		Dir:   "/", // it keeps no file system busy
		Env:   []string{"GOMAXPROCS=1"},
		Files: files,
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		w.Close()
		return nil
	}
	g := &guard{pipe: w, gone: make(chan struct{})}
	go func() {
		defer close(g.gone)
		proc.Wait()
	}()
	return g
}

// extend tells the guard when the lease ends. It does not wait for a guard that
// does not read: a later end follows.
func (g *guard) extend(left time.Duration) {
	if g == nil {
		return
	}
	g.pipe.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	g.tell(max(1, bootTime()+left))
}

// dismiss tells the guard to end, and returns a channel that is closed when it
// has.
func (g *guard) dismiss() (gone <-chan struct{}) {
	if g == nil {
		return nil
	}
	g.pipe.SetWriteDeadline(time.Now().Add(time.Second))
	g.tell(dismissed)
	g.pipe.Close()
	return g.gone
}

func (g *guard) tell(end time.Duration) {
	g.pipe.Write(binary.NativeEndian.AppendUint64(nil, uint64(end)))
}

// IsHelper reports whether the program was started by itself, as a guard or as
// the process that becomes a command. Its main function must then call Help.
func IsHelper(args []string) bool {
	return len(args) > 1 && (args[0] == guardName || args[0] == gateName)
}

// Help is the main function of a helper.
func Help(args []string) (code int) {
	if args[0] == gateName {
		return becomeCommand(args)
	}
	return guardCommand(args)
}

// guardCommand is the main function of a guard.
func guardCommand(args []string) (code int) {
	pid, err := strconv.Atoi(args[1])
	if err != nil || pid < 2 {
		return CodeTrouble
	}
	// A signal to all processes of a service is for the command, which may take its
	// time to end.
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP)
	parent := os.Getppid()
	ends := make(chan time.Duration)
	go func() {
		defer close(ends)
		for {
			var b [8]byte
			if _, err := io.ReadFull(os.Stdin, b[:]); err != nil {
				return
			}
			ends <- time.Duration(binary.NativeEndian.Uint64(b[:]))
		}
	}()
	end := bootTime() + time.Hour
	look := time.NewTicker(time.Hour)
	for {
		// Timers stand still while a machine is suspended: look again.
		look.Reset(min(max(end-bootTime(), 20*time.Millisecond), 5*time.Second))
		select {
		case next, ok := <-ends:
			switch {
			case !ok:
				killAll(pid)
				return 0
			case next == dismissed:
				return 0
			}
			end = next
		case <-look.C:
			// As long as our parent runs it sees to the end of the lease itself.
			if bootTime() > end && isStopped(parent) {
				killAll(pid)
			}
		}
	}
}

// killAll kills the command and its group. The number of the group stays taken
// while it has a member, and the parent dismisses the guard as soon as it has
// reaped the command, so the number cannot be another group's.
func killAll(pid int) {
	syscall.Kill(-pid, syscall.SIGKILL)
	killProcess(pid)
}
