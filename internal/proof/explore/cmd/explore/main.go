// Command explore runs the whole set of exhaustive searches, one line each, and
// fails unless every verdict is the expected one. It needs the checkers' build:
//
//	go run -tags mutants ./internal/proof/explore/cmd/explore [-states N] [-most N] [-shipped] [-trace] [ROW ...]
//
// It reports its progress on stderr every few seconds.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/proof/explore"
)

func main() {
	states := flag.Int("states", 0, "give a search up at so many states (0: never)")
	most := flag.Int("most", 0, "leave out rows that are known to have more states (0: none)")
	shipped := flag.Bool("shipped", false, "leave out rows that show a mutant, which make mutants searches, too")
	trace := flag.Bool("trace", false, "print how each violation comes about")
	flag.Parse()
	rows := slices.DeleteFunc(explore.Rows(), func(r explore.Row) bool {
		return flag.NArg() > 0 && !slices.Contains(flag.Args(), r.Name) || *most > 0 && sizeOf(r) > *most ||
			*shipped && r.Mutant != "" && len(r.Reach) == 0
	})
	expected, meter := 0, newMeter(rows)
	for _, row := range rows {
		if !explore.Switch(row.Off...) {
			fmt.Fprintf(os.Stderr, "explore: %s needs %q switched off: build with -tags mutants\n", row.Name, row.Off)
			os.Exit(2)
		}
		r := explore.Search(row.Model, explore.Limits{Workers: runtime.GOMAXPROCS(0), States: *states, Level: func(depth, states, _ int) {
			if now := time.Now(); meter.due(now) {
				fmt.Fprintln(os.Stderr, meter.line(row, states, depth, now))
			}
		}})
		explore.Switch()
		verdict := "as expected"
		switch {
		case r.Found != row.Want:
			verdict = fmt.Sprintf("NOT EXPECTED, which was %v", row.Want)
		case slices.ContainsFunc(row.Reach, func(d explore.Action) bool { return r.Actions[d] == 0 }):
			verdict = fmt.Sprintf("NOT REACHED, some of %v", row.Reach)
		case r.Found == 0 && !r.Complete:
			verdict = "GIVEN UP before all states were visited"
		default:
			expected++
		}
		meter.finish(row, r.States)
		fmt.Printf("%-10s %-24v %s; %d states, depth %d, %.1f s (%s)\n", row.Name, r.Found, verdict, r.States, r.Depth, r.Took.Seconds(), row.What)
		if *trace || r.Found != row.Want {
			for i, line := range r.Trace {
				fmt.Printf("  %3d. %s\n", i+1, line)
			}
		}
	}
	fmt.Printf("%d runs, %d as expected\n", len(rows), expected)
	if expected != len(rows) {
		os.Exit(1)
	}
}
