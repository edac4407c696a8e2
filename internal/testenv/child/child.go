// Package child runs processes that are ours to kill, to make stand still and to
// let go on. On Linux they are out of the way of Ctrl-C, and the kernel ends them
// when we die, in whatever way.
package child

import (
	"fmt"
	"os/exec"
	"runtime"
	"time"
)

// Goroutine is the function that waits for a running process. A goleak check
// that runs while one is still up excludes it with
// goleak.IgnoreAnyFunction(child.Goroutine). It is gone when the process is.
const Goroutine = "github.com/leasehold-dev/leasehold/internal/testenv/child.(*Process).run"

// patience bounds what takes milliseconds unless something is broken.
const patience = 30 * time.Second

// Process is a process that was started. Its methods are safe for concurrent
// use; those that send a signal fail when it is gone.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is gone
	err  error         // how it ended; set before done is closed
}

// Start starts cmd, whose SysProcAttr it sets.
func Start(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = sysProcAttr()
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// run starts the process and waits for it, all on one thread: Linux ties "kill
// it when its parent dies" to the thread that started it, so that thread has
// to live as long as the process does.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

// PID is the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process is gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is how the process ended, nil if well. It blocks until it has.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Kill ends the process by force and returns when it is gone. Calling it again
// is harmless.
func (p *Process) Kill() {
	p.cmd.Process.Kill() // fails only when it is gone already
	<-p.done
}

// End asks the process to end and returns when it is gone. If it does not go it
// is killed, which is an error. One that stands still is woken for it.
func (p *Process) End() error {
	if err := p.terminate(); err != nil {
		p.Kill()
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(patience):
		p.Kill()
		return fmt.Errorf("it ignored SIGTERM for %v and was killed", patience)
	}
}

// Freeze makes the process stand still and returns when it does.
func (p *Process) Freeze() error { return p.freeze() }

// Thaw lets a frozen process go on.
func (p *Process) Thaw() error { return p.thaw() }
