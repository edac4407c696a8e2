//go:build unix

package runner

import (
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner/warden"
)

// process is the command and the process group that it leads.
type process struct {
	pid     int // also the number of its group
	changes <-chan change
	guard   *guard
	gate    *gate       // nil if it was started without one
	reaped  atomic.Bool // the number may be somebody else's
}

func isFormat(err error) bool { return errors.Is(err, syscall.ENOEXEC) }

// start starts cmd as the leader of a group of its own.
// valid is how long the lease is valid.
func start(cmd Command, tty *terminal, valid time.Duration) (*process, *StartError) {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if tty.ours() && tty.stdin {
		// In the same breath as the start: a command in the background would
		// be stopped when it reads from the terminal.
		attr.Foreground, attr.Ctty = true, tty.fd
		tty.given = true
	}
	dieWithParent(attr)

	p := &process{}
	started := make(chan error)
	changes := make(chan change, 1)
	go func() {
		// The kernel ties the command's life to that of the thread that starts
		// it, not to that of the process: this thread has to stay.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		files := []*os.File{cmd.Stdin, cmd.Stdout, cmd.Stderr}
		if cmd.Tether != nil {
			files = append(files, cmd.Tether)
		}
		fds := make([]uintptr, len(files))
		for i, f := range files {
			fds[i] = f.Fd()
		}
		err := p.enter(cmd, &syscall.ProcAttr{Env: cmd.Env, Files: fds, Sys: attr}, valid)
		runtime.KeepAlive(files)
		started <- err
		if err == nil {
			p.await(changes)
		}
	}()
	if err := <-started; err != nil {
		return nil, startError(cmd.Args[0], err)
	}
	p.changes = changes
	return p, nil
}

// enter starts the command behind a gate, so that it is guarded from its first
// instruction. If that is impossible, it starts the command without one, and only
// the kernel's death signal remains.
func (p *process) enter(cmd Command, attr *syscall.ProcAttr, valid time.Duration) (err error) {
	self, err := warden.OwnExecutable()
	if err == nil {
		p.gate, err = newGate()
	}
	if err == nil {
		gated := *attr
		gated.Files = p.gate.files(attr.Files)
		p.pid, _, err = syscall.StartProcess(self, p.gate.args(cmd), &gated)
		p.gate.passed()
		if err != nil {
			p.gate.close()
			p.gate = nil
		}
	}
	if err != nil {
		p.pid, _, err = syscall.StartProcess(cmd.Path, cmd.Args, attr)
		return err
	}
	p.guard = newGuard(p.pid)
	p.guard.extend(valid)
	p.gate.open()
	return nil
}

// dismiss ends the guard of the command. gone is closed when the guard has ended.
func (p *process) dismiss() (gone <-chan struct{}) { return p.guard.dismiss() }

// extend says how long the lease is valid. A guard that was killed is replaced.
func (p *process) extend(left time.Duration) {
	if !p.guard.guards() && !p.reaped.Load() {
		p.guard.dismiss()
		p.guard = newGuard(p.pid)
	}
	p.guard.extend(left)
}

// await reports stops of the process, and its end. It reaps the process.
func (p *process) await(changes chan<- change) {
	for {
		var ws syscall.WaitStatus
		_, err := syscall.Wait4(p.pid, &ws, syscall.WUNTRACED, nil)
		if err == nil && !ws.Stopped() || err != nil && err != syscall.EINTR {
			p.reaped.Store(true)
		}
		switch {
		case err == syscall.EINTR:
		case err != nil:
			// Only if somebody else reaps our children; its code is unknown then.
			changes <- change{exit: &exit{code: CodeTrouble}}
			return
		case ws.Stopped():
			changes <- change{stop: ws.StopSignal()}
		case ws.Signaled():
			changes <- change{exit: p.ended(exit{signal: ws.Signal()})}
			return
		case ws.Exited():
			changes <- change{exit: p.ended(exit{code: ws.ExitStatus()})}
			return
		}
	}
}

// ended adds to e whether it is how the command ended.
func (p *process) ended(e exit) *exit {
	if p.gate != nil {
		e.failed = p.gate.failure(e)
	}
	return &e
}

// begun returns what is closed when the command was executed, or its process has ended.
func (p *process) begun() <-chan struct{} {
	if p.gate == nil {
		return closed
	}
	return p.gate.done
}

// signalOne sends sig to the command alone.
func (p *process) signalOne(sig syscall.Signal) {
	if !p.reaped.Load() {
		syscall.Kill(p.pid, sig)
	}
}

// signal goes to the whole group, and to the command if it has left that. The
// error says that the command cannot be given it; that it is gone is none.
func (p *process) signal(sig syscall.Signal) error {
	syscall.Kill(-p.pid, sig)
	if p.reaped.Load() {
		return nil
	}
	if group, err := syscall.Getpgid(p.pid); err == nil && group == p.pid {
		sig = 0 // it has it, if it may be given it
	}
	if err := syscall.Kill(p.pid, sig); err != syscall.ESRCH {
		return err
	}
	return nil
}

// terminate asks the group to stop. It also continues stopped processes, which
// would not receive the signal otherwise.
func (p *process) terminate() error {
	adoptOrphans()
	err := p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGCONT)
	return err
}

// goOn has the group go on when sig has stopped the command, unless it waits for the
// terminal: then it would be stopped again at once.
func (p *process) goOn(sig syscall.Signal) {
	if sig != syscall.SIGTTIN && sig != syscall.SIGTTOU {
		p.signal(syscall.SIGCONT)
	}
}

func (p *process) kill() error {
	adoptOrphans()
	return p.signal(syscall.SIGKILL)
}

// groupAlive reports whether anything is left in the group, once its leader was
// reaped: its number stays taken for as long as the group has a member. Those
// that have become our children are reaped here.
func (p *process) groupAlive() bool {
	for {
		var ws syscall.WaitStatus
		if pid, err := syscall.Wait4(-p.pid, &ws, syscall.WNOHANG, nil); err != syscall.EINTR && (pid <= 0 || err != nil) {
			break
		}
	}
	return syscall.Kill(-p.pid, 0) != syscall.ESRCH
}
