//go:build unix

package runner

import (
	"os"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner/warden"
)

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
	pid    int
	reaped bool
	pipe   *os.File
}

// newGuard starts a guard of the command pid, which is not reaped meanwhile. Without
// one the kernel's death signal is all there is.
func newGuard(pid int) *guard {
	self, err := warden.OwnExecutable()
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
	files := []uintptr{r.Fd(), null.Fd(), null.Fd()}
	if f := warden.OpenProcess(pid); f != nil {
		defer f.Close()
		files = append(files, f.Fd())
	}
	// Package os would start a process of its own first, to learn what the kernel can.
	guardPID, _, err := syscall.StartProcess(self, warden.GuardArgs(pid), &syscall.ProcAttr{
		Dir:   "/", // it keeps no file system busy
		Env:   []string{"GOMAXPROCS=1"},
		Files: files,
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		w.Close()
		return nil
	}
	return &guard{pid: guardPID, pipe: w}
}

// guards reports whether the guard is there. A guard that has ended is reaped.
func (g *guard) guards() bool {
	if g == nil {
		return false
	}
	if !g.reaped {
		pid, err := syscall.Wait4(g.pid, nil, syscall.WNOHANG, nil)
		g.reaped = pid == g.pid || err == syscall.ECHILD
	}
	return !g.reaped
}

// extend tells the guard when the lease ends. It does not wait for a guard that
// does not read: a later end follows.
func (g *guard) extend(left time.Duration) {
	if g == nil {
		return
	}
	g.pipe.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	g.pipe.Write(warden.Message(warden.BootTime() + left))
}

// dismiss ends the guard, and returns what is closed when it is gone. It is killed
// before it can see that the pipe is closed. One that is still starting, beside a
// command that was quick, would take milliseconds to read that it is not needed.
func (g *guard) dismiss() (gone <-chan struct{}) {
	if g == nil {
		return nil
	}
	ended := make(chan struct{})
	if g.guards() {
		syscall.Kill(g.pid, syscall.SIGKILL)
		go func() {
			defer close(ended)
			for {
				if _, err := syscall.Wait4(g.pid, nil, 0, nil); err != syscall.EINTR {
					return
				}
			}
		}()
	} else {
		close(ended)
	}
	g.pipe.Close()
	return ended
}
