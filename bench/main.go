// Command bench measures Leasehold and its peers side by side. It starts servers of its
// own, lets every implementation do the same in turn, round by round, and compares the
// medians.
//
//	go run .                         everything, about an hour
//	go run . -short                  half a minute, to check that it runs
//	go run . -scenarios contended,inside,waiting,far,first,shared
//	                                 only contended locks
//	go run . -only 'leasehold|floor' only these implementations
//	go run . -scenarios healthy,shared -only '^leasehold-(reader-|permit-)?1$'
//	                                 only kinds of locks beside a mutex
//	go run . -read results/raw.json -doc ../docs/performance/figures.md
//	                                 show earlier results again
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cell"
	"github.com/leasehold-dev/leasehold/bench/contend"
	"github.com/leasehold-dev/leasehold/bench/report"
	"github.com/leasehold-dev/leasehold/bench/servers"
)

// settings holds the flags.
type settings struct {
	only       *regexp.Regexp // names of implementations
	scenarios  map[string]bool
	goroutines []int
	processes  []int         // that want one lock
	hold       time.Duration // it, each time
	rounds     int
	dur, warm  time.Duration
	leases     int
	spin       bool
	short      bool
	out, doc   string
}

func main() {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case cell.Arg:
			end(cell.Main(os.Stdin, os.Stdout))
			return
		case contend.Arg:
			end(contend.Main(os.Stdin, os.Stdout))
			return
		case servers.SpinArg:
			end(servers.Spin())
			return
		}
	}
	end(run())
}

func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	s := settings{scenarios: map[string]bool{}}
	only := flag.String("only", "", "measure the implementations whose names match this regular `expression`")
	scenarios := flag.String("scenarios", "", "a `list` of "+strings.Join(allScenarios, ", ")+" (default all; with -short the quick ones)")
	goroutines := flag.String("goroutines", "1,16,256", "how many goroutines at once, a `list`")
	processes := flag.String("processes", "2,16,128", "how many processes want one lock, a `list`")
	flag.DurationVar(&s.hold, "hold", 0, "how long each holder keeps the contended lock")
	flag.IntVar(&s.rounds, "rounds", 5, "how many times to make each measurement")
	flag.DurationVar(&s.dur, "for", time.Second, "how long each measurement takes")
	flag.IntVar(&s.leases, "leases", 100_000, "how many leases to hold at once")
	flag.BoolVar(&s.spin, "spin", false, "always keep the processors awake, with spinners of idle priority")
	flag.BoolVar(&s.short, "short", false, "only check that it runs: one short round, without servers that are not installed")
	flag.StringVar(&s.out, "out", "", "write the raw results as JSON, figures.txt and charts into this `directory`")
	flag.StringVar(&s.doc, "doc", "", "put the figures into this `document`")
	read := flag.String("read", "", "measure nothing, and show the results in this raw.json or contention.json `file`")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unknown argument %q", flag.Arg(0))
	}
	if *read != "" {
		r, err := report.Read(*read)
		if err != nil {
			return err
		}
		return s.show(r)
	}
	var err error
	if s.only, err = regexp.Compile(*only); err != nil {
		return err
	}
	if s.goroutines, err = numbers(*goroutines); err != nil {
		return err
	}
	if s.processes, err = numbers(*processes); err != nil {
		return err
	}
	s.warm = s.dur / 4
	if s.short {
		s.rounds, s.dur, s.warm, s.leases = 1, 100*time.Millisecond, 30*time.Millisecond, min(s.leases, 3000)
		if *scenarios == "" {
			*scenarios = strings.Join(slices.Concat([]string{report.Healthy, heldScenario}, contentionScenarios), ",")
		}
		if s.processes = s.processes[:1]; s.processes[0] < 3 {
			s.processes[0] = 3
		}
	}
	if *scenarios == "" {
		*scenarios = strings.Join(allScenarios, ",")
	}
	for name := range strings.SplitSeq(*scenarios, ",") {
		if !known(name) {
			return fmt.Errorf("there is no scenario %q, only %s", name, strings.Join(allScenarios, ", "))
		}
		s.scenarios[name] = true
	}
	if s.rounds < 1 || s.dur < 10*time.Millisecond || s.leases < 1 {
		return fmt.Errorf("%d rounds of %v with %d leases measure nothing", s.rounds, s.dur, s.leases)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r, err := measureAll(ctx, s)
	if err != nil {
		return err
	}
	return s.show(r)
}

func numbers(list string) ([]int, error) {
	var all []int
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a number of goroutines or processes", text)
		}
		all = append(all, n)
	}
	return all, nil
}

// show prints the run and writes it to the places that the flags name. It then returns
// an error if an implementation did not exclude.
func (s settings) show(r *report.Run) error {
	if err := report.Print(os.Stdout, r); err != nil {
		return err
	}
	if s.out != "" {
		if err := s.keep(r); err != nil {
			return err
		}
	}
	if s.doc != "" {
		if err := report.Document(s.doc, r); err != nil {
			return err
		}
	}
	return report.Overlapped(r)
}

func (s settings) keep(r *report.Run) error {
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return err
	}
	alone, contended := r.Apart()
	if contended != nil {
		if err := contended.Write(filepath.Join(s.out, "contention.json")); err != nil {
			return err
		}
	}
	if alone != nil {
		if err := alone.Write(filepath.Join(s.out, "raw.json")); err != nil {
			return err
		}
	}
	for _, c := range report.Charts(r) {
		image, err := c.PNG()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.out, c.File), image, 0o644); err != nil {
			return err
		}
	}
	if s.doc != "" {
		return nil // the document has the figures
	}
	f, err := os.Create(filepath.Join(s.out, "figures.txt"))
	if err != nil {
		return err
	}
	if err := report.Print(f, r); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
