package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cell"
)

// process is a cell that has opened its client and waits for the signal to begin.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	cancel context.CancelFunc
	early  *cell.Outcome // set if the cell ended before it was ready
}

// slack is the time that a cell may take in addition to its measurements.
const slack = 60 * time.Second

// spawn starts a cell and waits until it is ready. The caller must call finish.
func spawn(ctx context.Context, s cell.Spec) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, slack+time.Duration(1+len(s.Goroutines))*2*(s.Warm+s.For+5*time.Second))
	p := &process{cmd: exec.CommandContext(ctx, self, cell.Arg), cancel: cancel}
	p.cmd.Stderr = os.Stderr
	p.in, err = p.cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	if err := json.NewEncoder(p.in).Encode(s); err != nil {
		p.end()
		return nil, err
	}
	line, err := p.out.ReadString('\n')
	switch {
	case err != nil:
		p.end()
		return nil, fmt.Errorf("%s ended before it was ready: %w", s.Kind, errors.Join(err, ctx.Err()))
	case strings.TrimSpace(line) != cell.Ready:
		p.early = &cell.Outcome{}
		if err := json.Unmarshal([]byte(line), p.early); err != nil {
			p.end()
			return nil, fmt.Errorf("%s said %q: %w", s.Kind, line, err)
		}
	}
	return p, nil
}

// finish tells the cell to begin and returns its outcome.
func (p *process) finish() (cell.Outcome, error) {
	defer p.end()
	if p.early != nil {
		return *p.early, nil
	}
	var o cell.Outcome
	if _, err := io.WriteString(p.in, "go\n"); err != nil {
		return o, err
	}
	err := json.NewDecoder(p.out).Decode(&o)
	return o, err
}

func (p *process) end() {
	p.in.Close()
	p.cancel() // the outcome has been read
	p.cmd.Wait()
}
