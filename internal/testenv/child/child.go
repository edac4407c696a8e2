// Package child runs processes that tests kill, freeze and thaw. On Linux Ctrl-C does not reach
// them, and the kernel ends them when this process dies, in whatever way.
package child

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// Goroutine is the function that waits for a running process. A goleak check that
// runs while a process is up excludes it with
// goleak.IgnoreAnyFunction(child.Goroutine). It ends with the process.
const Goroutine = "github.com/leasehold-dev/leasehold/internal/testenv/child.(*Process).run"

// patience bounds waits that take milliseconds unless something is broken.
const patience = 30 * time.Second

// Process is a started process. Its methods are safe for concurrent use. Those
// that send a signal fail when the process has ended.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	err  error         // how it ended; set before done is closed
}

// Start starts cmd. It adds to cmd.SysProcAttr that the kernel ends the process when
// its parent dies, with SIGKILL if no other signal is set there.
func Start(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = bind(cmd.SysProcAttr)
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// run starts the process and waits for it on one thread: Linux ties "kill it when
// its parent dies" to the thread that started it, so that thread must live as
// long as the process.
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

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the process ended, nil for success. It blocks until the process
// has ended.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Signal sends a signal.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Kill kills the process and returns when it has ended. Calling it again is
// harmless.
func (p *Process) Kill() {
	p.cmd.Process.Kill() // fails only if it has ended already
	<-p.done
}

// End asks the process to end and returns when it has. It first thaws a frozen
// process. If the process does not end, End kills it and returns an error.
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
		return fmt.Errorf("the process ignored SIGTERM for %v and was killed", patience)
	}
}

// Freeze stops the process (SIGSTOP) and returns when it has stopped.
func (p *Process) Freeze() error { return p.freeze() }

// Thaw continues a frozen process.
func (p *Process) Thaw() error { return p.thaw() }
