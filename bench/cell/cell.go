// Package cell makes one measurement of one implementation in a process of its own. So
// earlier measurements leave nothing behind, and everything that the process uses
// belongs to that implementation.
//
// The process reads a Spec from its input, opens its client, prints Ready, waits for
// another line, measures, and prints an Outcome.
package cell

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

// Arg makes the program a cell: main calls Main then.
const Arg = "cell"

// The tasks of a cell.
const (
	Measure = "measure" // lock and unlock as fast as possible
	Check   = "check"   // does it exclude anybody at all?
	Held    = "held"    // what many leases cost that are just held
)

// Spec is the task of a cell.
type Spec struct {
	Do         string
	Kind       string        // of locks
	Addrs      []string      // of its servers
	Probe      []string      // Redis servers to ask what they have done
	PID        int           // server whose processor time is read, if the server cannot report it
	Goroutines []int         // to measure, one after the other
	Warm       time.Duration // before each measurement
	For        time.Duration // each measurement
	Leases     int           // to hold
	TTL        time.Duration // of what is held
}

// Outcome is the result of a cell.
type Outcome struct {
	Figures []Figures    `json:",omitempty"`
	Held    *HeldFigures `json:",omitempty"`
	Error   string       `json:",omitempty"` // nothing could be found out
}

// Ready is the line that a cell prints when its client is open.
const Ready = "ready"

// Main runs the process.
func Main(in io.Reader, out io.Writer) error {
	r := bufio.NewReader(in)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	var s Spec
	if err := json.Unmarshal(line, &s); err != nil {
		return err
	}
	outcome, err := s.run(context.Background(), func() error {
		fmt.Fprintln(out, Ready)
		_, err := r.ReadString('\n')
		return err
	})
	if err != nil {
		outcome.Error = err.Error()
	}
	return json.NewEncoder(out).Encode(outcome)
}

// run executes the task; begin waits for the signal to begin.
func (s Spec) run(ctx context.Context, begin func() error) (Outcome, error) {
	kind, ok := locks.Named(s.Kind)
	if !ok || kind.Open == nil {
		return Outcome{}, fmt.Errorf("there is no implementation %q", s.Kind)
	}
	if s.Do == Held {
		f, err := s.held(ctx, begin)
		return Outcome{Held: f}, err
	}
	client, err := kind.Open(ctx, s.Addrs)
	if err != nil {
		return Outcome{}, fmt.Errorf("open: %w", err)
	}
	defer client.Close()
	if s.Do == Check {
		other, err := kind.Open(ctx, s.Addrs)
		if err != nil {
			return Outcome{}, fmt.Errorf("open: %w", err)
		}
		defer other.Close()
		if err := begin(); err != nil {
			return Outcome{}, err
		}
		return Outcome{}, exclusion(ctx, "bench/check/"+s.Kind, kind.Limit, client, other)
	}
	return s.measure(ctx, client, begin)
}

func (s Spec) measure(ctx context.Context, client locks.Client, begin func() error) (o Outcome, err error) {
	most := 0
	for _, n := range s.Goroutines {
		most = max(most, n)
	}
	pairs := make([]load.Pair, most)
	for i := range pairs {
		pairs[i] = client.Pair(fmt.Sprintf("bench/%s/%d", s.Kind, i))
	}
	// Connections, scripts and parent nodes are created before any fault.
	if r := run(ctx, pairs, s.Warm, warmGrace); r.Operations == 0 {
		return o, fmt.Errorf("not a single lock: %w", orNothing(r.Err))
	}
	if err := begin(); err != nil {
		return o, err
	}
	for _, n := range s.Goroutines {
		run(ctx, pairs[:n], s.Warm, warmGrace)
		before, err := s.probe()
		if err != nil {
			return o, err
		}
		r := run(ctx, pairs[:n], s.For, grace)
		after, err := s.probe()
		if err != nil {
			return o, err
		}
		o.Figures = append(o.Figures, figuresOf(r, after.since(before)))
	}
	return o, nil
}

// How much longer than the measurement an operation may take.
const (
	grace     = 5 * time.Second
	warmGrace = time.Second // when it is not measured
)

// run limits operations that hang, and counts them as errors.
func run(ctx context.Context, pairs []load.Pair, d, grace time.Duration) load.Result {
	ctx, cancel := context.WithTimeout(ctx, d+grace)
	defer cancel()
	r := load.Run(ctx, pairs, d)
	if r.Cut > 0 {
		r.Errors += uint64(r.Cut)
		r.Err = cmp.Or(r.Err, fmt.Errorf("not done after %v", grace))
	}
	return r
}

func orNothing(err error) error {
	if err == nil {
		return fmt.Errorf("and no error")
	}
	return err
}
