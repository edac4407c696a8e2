package contend

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Member is one worker process, seen from its parent.
type Member struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	cancel context.CancelFunc
	ended  bool
}

// patience is how long workers may take for everything that is not measured: more than
// a hundred of them start at once on few processors.
const patience = 90 * time.Second

// Enlist starts a worker with a spec. The worker ends with ctx, with End, or with this
// process.
func Enlist(ctx context.Context, s Spec) (*Member, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	m := &Member{cmd: exec.CommandContext(ctx, self, Arg), cancel: cancel}
	m.cmd.Stderr, m.cmd.SysProcAttr = os.Stderr, dieWithUs()
	in, err := m.cmd.StdinPipe()
	if err == nil {
		m.in = in
		var out io.ReadCloser
		if out, err = m.cmd.StdoutPipe(); err == nil {
			m.out = bufio.NewReader(out)
			err = launch(m.cmd)
		}
	}
	if err != nil {
		cancel()
		return nil, err
	}
	if err := m.tell(s); err != nil {
		m.End()
		return nil, err
	}
	return m, nil
}

// launch starts a command. Linux ends a child together with the thread that started it,
// so one thread starts them all and never ends.
func launch(cmd *exec.Cmd) error {
	launcher.Do(func() {
		go func() {
			runtime.LockOSThread()
			for start := range launches {
				start()
			}
		}()
	})
	started := make(chan error)
	launches <- func() { started <- cmd.Start() }
	return <-started
}

var (
	launcher sync.Once
	launches = make(chan func())
)

// tell writes a line of JSON to the worker.
func (m *Member) tell(what any) error { return json.NewEncoder(m.in).Encode(what) }

// hear waits for the next line of the worker, which must be word.
func (m *Member) hear(word string) error {
	line, err := within(patience, m, func() (string, error) { return m.out.ReadString('\n') })
	if err != nil {
		return fmt.Errorf("a worker ended or hung before it was %s: %w", word, err)
	}
	if line = strings.TrimSpace(line); line != word {
		return fmt.Errorf("a worker said %q instead of %q", line, word)
	}
	return nil
}

// within limits the time of a call that blocks until the worker writes something.
func within[T any](d time.Duration, m *Member, f func() (T, error)) (T, error) {
	timer := time.AfterFunc(d, m.cancel)
	defer timer.Stop()
	return f()
}

// collect reads the results of the worker.
func (m *Member) collect() (heading, [][]Hold, error) {
	var h heading
	all, err := within(patience, m, func() ([][]Hold, error) {
		if err := readJSON(m.out, &h); err != nil {
			return nil, fmt.Errorf("results of a worker: %w", err)
		}
		all := make([][]Hold, len(h.Turns))
		for i, n := range h.Turns {
			var err error
			if all[i], err = readHolds(m.out, n); err != nil {
				return nil, err
			}
		}
		return all, nil
	})
	return h, all, err
}

// Kill ends the worker as if its machine had lost power; Freeze stops it.
func (m *Member) Kill() { m.end(func() { m.cmd.Process.Kill() }) }

// Freeze stops the worker where it is.
func (m *Member) Freeze() error { return m.cmd.Process.Signal(syscall.SIGSTOP) }

// End ends the worker, in whatever state it is. Calling it again is harmless.
func (m *Member) End() { m.end(m.cancel) }

// dismissed is how long a worker may take to end after it was told to.
const dismissed = 5 * time.Second

// dismiss lets the worker end by itself after it has written its results.
func (m *Member) dismiss() {
	m.end(func() { time.AfterFunc(dismissed, m.cancel) })
}

func (m *Member) end(how func()) {
	if m.ended {
		return
	}
	m.ended = true
	how()
	if m.out != nil {
		io.Copy(io.Discard, m.out) // until it is gone
	}
	m.in.Close()
	m.cmd.Wait()
	m.cancel()
}

// Fleet is a group of workers.
type Fleet []*Member

// Start starts a worker for each spec, and returns when all are ready.
func Start(ctx context.Context, specs []Spec) (Fleet, error) {
	f := make(Fleet, 0, len(specs))
	for _, s := range specs {
		m, err := Enlist(ctx, s)
		if err != nil {
			f.End()
			return nil, err
		}
		f = append(f, m)
	}
	if err := f.each(func(m *Member) error { return m.hear(ready) }); err != nil {
		f.End()
		return nil, err
	}
	return f, nil
}

// End ends all workers.
func (f Fleet) End() {
	f.each(func(m *Member) error {
		m.End()
		return nil
	})
}

// each calls do for all workers at once. Of several errors, which are mostly the same,
// it returns one.
func (f Fleet) each(do func(*Member) error) error {
	var failed error
	var once sync.Once
	var wg sync.WaitGroup
	for _, m := range f {
		wg.Go(func() {
			if err := do(m); err != nil {
				once.Do(func() { failed = err })
			}
		})
	}
	wg.Wait()
	return failed
}
