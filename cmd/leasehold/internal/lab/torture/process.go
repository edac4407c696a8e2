package torture

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lab/history"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// process is one life of a worker process.
type process struct {
	plan
	cmd   *exec.Cmd
	stdin io.WriteCloser
	log   string        // file of what it prints
	done  chan struct{} // closed when it is gone

	mu     sync.Mutex // guards what follows
	follow *history.Follower
	up     bool
	buried bool
	dumped bool          // it was made to say what it is at, and to end
	killed clock.Instant // when we did; zero if we did not
	// trouble is what it last said kept it from working.
	trouble string
}

// start starts a worker, and hands it its plan.
func start(p plan, dir string, command func() *exec.Cmd) (*process, error) {
	base := filepath.Join(dir, fmt.Sprintf("worker-%d.%d", p.Proc, p.Life))
	p.History = base + ".jsonl"
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	w := &process{plan: p, cmd: command(), log: base + ".log", done: make(chan struct{}), follow: history.Follow(p.History)}
	log, err := os.OpenFile(w.log, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own copy
	w.cmd.Stdout, w.cmd.Stderr = log, log
	if w.stdin, err = w.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	apart(w.cmd)
	started := make(chan error, 1)
	go w.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting worker %d: %w", p.Proc, err)
	}
	if _, err := w.stdin.Write(append(text, '\n')); err != nil {
		w.kill()
		return nil, w.ended()
	}
	return w, nil
}

// run starts the process and waits for it, all on one thread: Linux ties "end
// it when its parent dies" to the thread that started it.
func (w *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := w.cmd.Start()
	started <- err
	if err == nil {
		w.cmd.Wait()
		close(w.done)
	}
}

// kill ends the process with no chance to do anything more.
func (w *process) kill() {
	w.mu.Lock()
	if w.killed == 0 {
		w.killed = history.Now() // before: it may be gone from here on
	}
	w.mu.Unlock()
	w.cmd.Process.Kill() // fails only when it is gone already
	<-w.done
}

// running reports whether the process is there.
func (w *process) running() bool {
	select {
	case <-w.done:
		return false
	default:
		return true
	}
}

// read hands over what the process has written since the last time.
func (w *process) read(each func(history.Event) error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.buried {
		return nil
	}
	var wrong error
	err := w.follow.Read(func(e history.Event) {
		switch e.Op {
		case history.Up:
			w.up = true
		case history.Trouble:
			w.trouble = e.Err
		}
		if err := each(e); err != nil && wrong == nil {
			wrong = fmt.Errorf("%s: %w", w.History, err)
		}
	})
	if err != nil {
		return err
	}
	return wrong
}

// ready reports whether the process has begun, and else what it says of it.
func (w *process) ready() (bool, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.up, w.trouble
}

// ended is how the process ended, as an error, unless that is what we wanted.
func (w *process) ended() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.cmd.ProcessState
	switch {
	case w.running(), state == nil, state.Success(), w.dumped, w.killed != 0 && signalled(state):
		return nil
	}
	said, _ := os.ReadFile(w.log)
	const most = 4 << 10
	if len(said) > most {
		said = append([]byte("..."), said[len(said)-most:]...)
	}
	return fmt.Errorf("worker %d ended by itself (%v): %s", w.Proc, state, strings.TrimSpace(string(said)))
}

// close gives back what belongs to a process that is gone.
func (w *process) close() {
	w.stdin.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buried = true
	w.follow.Close()
	if fi, err := os.Stat(w.log); err == nil && fi.Size() == 0 {
		os.Remove(w.log)
	}
}
