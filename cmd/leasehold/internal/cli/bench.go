package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lockview"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/spf13/cobra"
)

const (
	benchRounds = 5
	benchPrefix = "leasehold-bench/"
	benchMost   = 10_000 // goroutines
)

// benchFlags are the flags of "bench".
type benchFlags struct {
	dur        time.Duration
	ttl        time.Duration
	goroutines []int
	asJSON     bool
}

// benchCommand is "leasehold bench".
func benchCommand(p *program) *cobra.Command {
	o := benchFlags{}
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast a store's locks are",
		Long: `Locks and unlocks as fast as it can, from several goroutines with a lock of their
own each, and prints operations per second, latencies, and the cost to this
process. It measures this machine, the network and the servers together.

Each number of goroutines is measured for --for, in five rounds. The rounds
alternate, so that a disturbance affects all numbers; the results are medians of
the rounds. One operation is a lock and an unlock: LOCK+UNLOCK/S counts them, and
CLIENT CPU and ALLOCS are per operation. Latencies grow with the number of
goroutines, which share the processors and connections; with 1 they are what a
single caller sees.

The locks have unique names that begin with "` + benchPrefix + `". They are released,
or end by their TTL; a Redis server keeps their token counters for a day. The load
is as high as one process can make it: think before you run this against servers
that others depend on.

Progress goes to standard error, the table to standard output. For results with
contention and comparisons with other libraries see docs/performance.md.

With --json, a stable interface, it prints one object with
  engine, nodes, quorum
               what the store is
  ttl_ms, for_ms
               the flags
  results      an array with an object for each number of goroutines:
               goroutines, rounds, operations and errors of all rounds,
               error (the first one, if any), and as medians over the rounds
               per_second, lock_p50_us, lock_p99_us, unlock_p50_us,
               unlock_p99_us, client_cpu_us and allocs (both per operation)
Fields may be added; none is renamed or removed.

Exit codes: 0 measured; 125 if leasehold itself failed (wrong usage, the store
cannot be reached, no operation succeeded); 128+N ended by signal N, after printing
what was measured until then.`,
		Example: `  leasehold bench --store redis://a,b,c
  leasehold bench --store redis://a --goroutines 1,64 --for 10s --json`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return p.bench(c, o) },
	}
	f := c.Flags()
	f.DurationVar(&o.dur, "for", 5*time.Second, "how long to measure each number of goroutines: a `TIME` such as 10s")
	f.IntSliceVar(&o.goroutines, "goroutines", []int{1, 16, 256}, "the numbers of goroutines to measure, as a `LIST`")
	f.DurationVar(&o.ttl, "ttl", leasehold.DefaultTTL, "the `TTL` of the locks")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	return c
}

// settle returns an error if the flags are invalid.
func (o *benchFlags) settle(c *cobra.Command) error {
	if o.dur < 100*time.Millisecond || o.dur > 24*time.Hour {
		return usage(c, "--for %v: it has to be 100ms to 24h", o.dur)
	}
	if len(o.goroutines) == 0 {
		return usage(c, "--goroutines is empty: give at least one number")
	}
	for _, n := range o.goroutines {
		if n < 1 || n > benchMost {
			return usage(c, "--goroutines %d: each number has to be 1 to %d", n, benchMost)
		}
	}
	slices.Sort(o.goroutines)
	o.goroutines = slices.Compact(o.goroutines)
	return nil
}

// bench runs "leasehold bench".
func (p *program) bench(c *cobra.Command, o benchFlags) error {
	if err := o.settle(c); err != nil {
		return err
	}
	sigs := listen()
	ctx, stop := sigs.during(context.Background())
	st, err := p.openStore(ctx, c)
	if err != nil {
		if sig := stop(); sig != 0 {
			return endedBy(sig)
		}
		return err
	}
	results := p.measure(ctx, leasehold.New(st, nil), o)
	caps := st.Caps()
	closed := st.Close()
	sig := stop()
	p.voice.Status("")
	p.voice.Flush(time.Second) // the table comes after the progress
	if err := p.tellBench(caps, o, results); err != nil {
		return err
	}
	switch {
	case sig != 0:
		return endedBy(sig)
	case closed != nil:
		return closed
	}
	for _, r := range results {
		if r.Operations == 0 {
			return fmt.Errorf("with %s no lock was acquired and released within %s: %w", goroutines(r.Goroutines), voice.Brief(o.dur), orSlow(r.Err))
		}
	}
	return nil
}

func orSlow(err error) error {
	if err == nil {
		return fmt.Errorf("the store is too slow for that: measure for longer")
	}
	return err
}

// measure runs the rounds, until they are done or ctx ends.
func (p *program) measure(ctx context.Context, locks *leasehold.Client, o benchFlags) []load.Summary {
	prefix := benchPrefix + store.NewOwner()[:8] + "/"
	pairs := make([]load.Pair, slices.Max(o.goroutines))
	for i := range pairs {
		pairs[i] = load.OfLock(locks.Mutex(prefix + strconv.Itoa(i)).With(leasehold.LockOptions{TTL: o.ttl, Purpose: "leasehold bench"}))
	}
	slice := o.dur / benchRounds
	tell := p.benchProgress(len(o.goroutines))
	// The first requests pay for connections and scripts that later ones find.
	load.Run(ctx, pairs, min(slice/4, 200*time.Millisecond))
	runs := make([][]load.Result, len(o.goroutines))
	for round := range benchRounds {
		for i, n := range o.goroutines {
			if ctx.Err() != nil {
				break
			}
			r := load.Run(ctx, pairs[:n], slice)
			runs[i] = append(runs[i], r)
			tell(round, i, r)
		}
	}
	var results []load.Summary
	for _, rs := range runs {
		if len(rs) > 0 {
			results = append(results, load.Summarize(rs))
		}
	}
	return results
}

// benchProgress shows the last measurement: in one status line on a terminal, and
// otherwise in a line for each round.
func (p *program) benchProgress(numbers int) func(round, i int, r load.Result) {
	var parts []string
	return func(round, i int, r load.Result) {
		parts = append(parts[:i:i], fmt.Sprintf("%s %s/s", goroutines(r.Goroutines), load.Thousands(r.PerSecond)))
		line := fmt.Sprintf("round %d of %d: %s", round+1, benchRounds, strings.Join(parts, ", "))
		switch {
		case p.voice.Screen:
			p.voice.Status(line)
		case i == numbers-1:
			p.voice.Note("%s", line)
		}
	}
}

func goroutines(n int) string {
	if n == 1 {
		return "1 goroutine"
	}
	return fmt.Sprintf("%d goroutines", n)
}

// tellBench prints the results, and errors to standard error.
func (p *program) tellBench(caps store.Caps, o benchFlags, results []load.Summary) error {
	if o.asJSON {
		return lockview.WriteJSON(p.stdout, benchJSONOf(caps, o, results))
	}
	if len(results) == 0 {
		return nil
	}
	rows := make([]load.Row, len(results))
	for i, r := range results {
		rows[i].Summary = r
		if r.Err != nil && r.Operations > 0 {
			p.voice.Note("with %s, %d operations failed; the first: %v", goroutines(r.Goroutines), r.Errors, r.Err)
		}
	}
	return load.Print(p.stdout, rows)
}

// benchJSON is the output of "bench --json", as described in its help.
type benchJSON struct {
	Engine  string            `json:"engine"`
	Nodes   int               `json:"nodes"`
	Quorum  int               `json:"quorum"`
	TTL     int64             `json:"ttl_ms"`
	For     int64             `json:"for_ms"`
	Results []benchResultJSON `json:"results"`
}

type benchResultJSON struct {
	Goroutines int     `json:"goroutines"`
	Rounds     int     `json:"rounds"`
	Operations uint64  `json:"operations"`
	Errors     uint64  `json:"errors"`
	Error      string  `json:"error,omitempty"`
	PerSecond  float64 `json:"per_second"`
	LockP50    float64 `json:"lock_p50_us"`
	LockP99    float64 `json:"lock_p99_us"`
	UnlockP50  float64 `json:"unlock_p50_us"`
	UnlockP99  float64 `json:"unlock_p99_us"`
	ClientCPU  float64 `json:"client_cpu_us"`
	Allocs     float64 `json:"allocs"`
}

func benchJSONOf(caps store.Caps, o benchFlags, results []load.Summary) benchJSON {
	j := benchJSON{
		Engine: caps.Engine, Nodes: caps.Nodes, Quorum: caps.Quorum,
		TTL: o.ttl.Milliseconds(), For: o.dur.Milliseconds(), Results: []benchResultJSON{},
	}
	for _, r := range results {
		one := benchResultJSON{
			Goroutines: r.Goroutines, Rounds: r.Rounds, Operations: r.Operations, Errors: r.Errors, PerSecond: r.PerSecond,
			LockP50: micros(r.LockP50), LockP99: micros(r.LockP99), UnlockP50: micros(r.UnlockP50), UnlockP99: micros(r.UnlockP99),
			ClientCPU: micros(r.CPU), Allocs: r.Allocs,
		}
		if r.Err != nil {
			one.Error = voice.Safe(r.Err.Error())
		}
		j.Results = append(j.Results, one)
	}
	return j
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
