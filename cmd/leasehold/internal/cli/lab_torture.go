package cli

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lab/torture"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/screen"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/spf13/cobra"
)

// codeViolation is the exit code if a guarantee was violated.
const codeViolation = 1

// tortureFlags are the flags of "lab torture".
type tortureFlags struct {
	dur   time.Duration
	ttl   time.Duration
	procs int
	locks int
	seed  uint64
	out   string
	kinds bool
}

// tortureCommand is "lab torture".
func tortureCommand(p *program) *cobra.Command {
	o := tortureFlags{}
	c := &cobra.Command{
		Use:   "torture",
		Short: "Try to break the locks of your own servers",
		Long: `Starts several processes that compete for a few locks of the store, stops and kills
some of them meanwhile, and records everything they do. Then it checks the record:

  - no two holders had a valid lease at the same time;
  - every later grant has a larger fencing token;
  - what holders wrote while their leases were valid arrived in the order of their
    tokens;
  - a resource behind a guard (package httpguard) refuses the writes that holders make
    late, and no others;
  - all operations can be ordered such that a plain lock and a plain counter would
    have answered the same (porcupine, a linearizability checker);
  - every lock is granted again soon after the last disturbance.

With --kinds, the first lock is a mutex, the second a read-write lock, the third a
semaphore of 3, the fourth a semaphore of 8, and again. Of these it checks that no
writer had a valid lease beside another holder, that no more permits were held than
there are, that no two holders had the same slot, and that tokens rise from each
holder of a slot to the next, and from writers to readers and back.

It stops and kills only its own processes. The servers are yours: disturb them
while it runs, to see how they and their settings cope. If a Redis server restarts
without its data, expect a violation.

The locks have unique names that begin with "leasehold-torture/". They are
released, or end by their TTL; a Redis server keeps their token counters for a day.
Expect a few hundred requests a second.

Progress goes to standard error, the verdict to standard output; its last line
begins with PASS, FAIL or NONE (interrupted before anything was granted). The
directory of the history has a plot of it, history.svg, and after a violation a
page that shows where no order can be found.

The seed decides which process is stopped or killed in which order and what is
tried, but not the exact times: runs with the same seed are similar, not equal.

Exit codes: 0 no violation; 1 a violation; 125 if leasehold itself failed (wrong
usage, the store cannot be reached); 128+N ended by signal N without a violation.`,
		Example: `  leasehold lab torture                                # of the default store, a file
  leasehold lab torture --store redis://a,b,c --for 1m --procs 8 --out ./history`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return p.torture(c, o) },
	}
	f := c.Flags()
	f.DurationVar(&o.dur, "for", 30*time.Second, "how long to disturb the processes: a `TIME` such as 1m")
	f.DurationVar(&o.ttl, "ttl", 2*time.Second, "the `TTL` of the locks")
	f.IntVar(&o.procs, "procs", 4, "the `NUMBER` of processes that compete")
	f.IntVar(&o.locks, "locks", 3, "the `NUMBER` of locks that they compete for")
	f.BoolVar(&o.kinds, "kinds", false, "compete for read-write locks and semaphores as well")
	f.Uint64Var(&o.seed, "seed", 0, "repeat the pattern of the run that had this `NUMBER` (default: a new one)")
	f.StringVar(&o.out, "out", "", "`DIR` for the history and its plot, new or empty\n(default: a new one for temporary files)")
	return c
}

// tortureWorkerCommand is the command that "lab torture" starts as a worker.
func tortureWorkerCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:    "torture-worker",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return torture.Work(p.stdin, openURLs)
		},
	}
}

// openURLs opens a store for a worker, which prints nothing.
func openURLs(ctx context.Context, urls []string) (*store.Store, error) {
	s, err := schemeOf(urls)
	if err != nil {
		return nil, err
	}
	return s.open(ctx, strings.Join(urls, "\n"), store.OpenOptions{})
}

// torture runs "leasehold lab torture".
func (p *program) torture(c *cobra.Command, o tortureFlags) error {
	switch {
	case o.seed == 0 && c.Flags().Changed("seed"):
		return usage(c, "--seed 0: seeds begin with 1")
	case o.seed == 0:
		o.seed = rand.Uint64N(1e9) + 1
	}
	urls, _, err := p.where.urls(c)
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	config := torture.Config{
		Procs: o.procs, Locks: torture.Names(max(o.locks, 0)), TTL: o.ttl, For: o.dur, Seed: o.seed, Store: urls, Dir: o.out,
		Command:  func() *exec.Cmd { return exec.Command(exe, "lab", "torture-worker") },
		Progress: p.tortureProgress(o.dur),
	}
	if o.kinds {
		config.Kinds = torture.Kinds(len(config.Locks))
	}
	sigs := listen()
	ctx, stop := sigs.during(context.Background())
	report, err := p.runTorture(ctx, c, config)
	sig := stop()
	if sig != 0 && report == nil {
		return endedBy(sig)
	}
	if err != nil {
		return err
	}
	p.voice.Flush(time.Second) // the verdict comes after the progress
	var b strings.Builder
	report.Print(&b)
	in := screen.ColoursOn(p.stdout)
	for line := range strings.Lines(b.String()) {
		if _, err = io.WriteString(p.stdout, verdictIn(in, line)); err != nil {
			break
		}
	}
	switch {
	case !report.OK():
		return &exitError{code: codeViolation}
	case sig != 0:
		return endedBy(sig)
	}
	return err
}

// runTorture checks that the run is possible, and performs it.
func (p *program) runTorture(ctx context.Context, c *cobra.Command, config torture.Config) (*torture.Report, error) {
	st, err := p.openStore(ctx, c)
	if err != nil {
		return nil, err
	}
	caps := st.Caps()
	if err := st.Close(); err != nil {
		return nil, err
	}
	config.Nodes = caps.Nodes
	if err := config.Check(caps); err != nil {
		return nil, usage(c, "%w", err)
	}
	temporary := config.Dir == ""
	if temporary {
		if config.Dir, err = os.MkdirTemp("", "leasehold-torture-"); err != nil {
			return nil, err
		}
	}
	report, err := torture.Run(ctx, config)
	p.voice.Status("")
	if err != nil && temporary {
		os.RemoveAll(config.Dir)
	}
	return report, err
}

// tortureProgress shows the progress: in one status line on a terminal, and
// otherwise in a line from time to time.
func (p *program) tortureProgress(whole time.Duration) func(torture.Progress) {
	var mu sync.Mutex
	var last time.Time
	phase := ""
	return func(g torture.Progress) {
		mu.Lock()
		defer mu.Unlock()
		every := 5 * time.Second
		if p.voice.Screen {
			every = 250 * time.Millisecond
		}
		if g.Phase == phase && time.Since(last) < every {
			return
		}
		phase, last = g.Phase, time.Now()
		line := map[string]string{
			"starting": "starting the processes",
			"faults":   fmt.Sprintf("%s of %s", voice.Brief(g.Elapsed.Truncate(time.Second)), voice.Brief(whole)),
			"calm":     "all is calm: waiting until every lock is granted again",
			"stopping": "stopping the processes",
			"checking": "checking the history",
		}[phase]
		line += fmt.Sprintf("; %s, %s lost; processes stopped %s, killed %s", voice.Count(g.Granted, "grant"), voice.Count(g.Lost, "lease"), voice.Count(g.Stops, "time"), voice.Count(g.Kills, "time"))
		if p.voice.Screen {
			p.voice.Status(line)
		} else {
			p.voice.Note("%s", line)
		}
	}
}
