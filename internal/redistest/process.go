package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// process is one run of the server program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is gone
	err  error         // how it ended; set before done is closed
}

func startProcess(binary string, args []string, dir, logPath string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own copy
	cmd := exec.Command(binary, args...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = sysProcAttr()
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("redistest: starting %s: %w", binary, err)
	}
	return p, nil
}

// run starts the process and waits for it, all on one thread: Linux ties "kill
// it when its parent dies" to the thread that started it, so that thread has
// to live as long as the process does.
func (p *process) run(started chan<- error) {
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

func (p *process) kill() {
	p.cmd.Process.Kill() // fails only when it is gone already
	<-p.done
}

// stop ends the process in order, and by force when that takes too long.
func (p *process) stop() error {
	if err := p.terminate(); err != nil {
		p.kill()
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(patience):
		p.kill()
		return fmt.Errorf("it ignored SIGTERM for %v and was killed", patience)
	}
}
