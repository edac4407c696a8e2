package sqltest

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// process is a running program.
type process struct {
	cmd     *exec.Cmd
	logPath string
	stop    os.Signal     // what makes it end in order
	done    chan struct{} // closed when it is gone
	err     error         // how it ended; set before done is closed
}

// run starts a program.
func (u user) run(program string, args []string, dir, logPath string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own copy
	p := &process{cmd: exec.Command(program, args...), logPath: logPath, done: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+dir, "TMPDIR="+dir) // its words are looked for
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = u.attr()
	started := make(chan error, 1)
	go p.wait(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// wait starts the process and waits for it on one thread: Linux ties "end it when
// its parent dies" to the thread that started it.
func (p *process) wait(started chan<- error) {
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

// end sends the signal, and kills the process if it does not end in time.
func (p *process) end(with os.Signal) {
	if with == nil || p.cmd.Process.Signal(with) != nil {
		p.cmd.Process.Kill() // fails only when it is gone already
	}
	select {
	case <-p.done:
	case <-time.After(patience / 4):
		p.cmd.Process.Kill()
		<-p.done
	}
}

// log returns what the process has printed, or the end of it if it is long.
func (p *process) log() string {
	b, err := os.ReadFile(p.logPath)
	if err != nil {
		return err.Error()
	}
	const most = 16 << 10
	return strings.TrimSpace(string(b[max(0, len(b)-most):]))
}
