// Command explore runs the whole set of exhaustive searches, one line each, and
// fails unless every verdict is the expected one. It needs the checkers' build:
//
//	go run -tags mutants ./internal/proof/explore/cmd/explore [-states N] [-trace] [ROW ...]
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
	trace := flag.Bool("trace", false, "print how each violation comes about")
	flag.Parse()
	runs, expected := 0, 0
	for _, row := range explore.Rows() {
		if flag.NArg() > 0 && !slices.Contains(flag.Args(), row.Name) {
			continue
		}
		if !explore.Switch(row.Off...) {
			fmt.Fprintf(os.Stderr, "explore: %s needs %q switched off: build with -tags mutants\n", row.Name, row.Off)
			os.Exit(2)
		}
		r := explore.Search(row.Model, explore.Limits{Workers: runtime.GOMAXPROCS(0), States: *states, Level: progress(row.Name)})
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
		runs++
		fmt.Printf("%-10s %-24v %s; %d states, depth %d, %.1f s (%s)\n", row.Name, r.Found, verdict, r.States, r.Depth, r.Took.Seconds(), row.What)
		if *trace || r.Found != row.Want {
			for i, line := range r.Trace {
				fmt.Printf("  %3d. %s\n", i+1, line)
			}
		}
	}
	fmt.Printf("%d runs, %d as expected\n", runs, expected)
	if expected != runs {
		os.Exit(1)
	}
}

// progress tells on stderr, now and then, how far a long search is.
func progress(name string) func(depth, states, frontier int) {
	last := time.Now()
	return func(depth, states, frontier int) {
		if time.Since(last) > 20*time.Second {
			last = time.Now()
			fmt.Fprintf(os.Stderr, "%s: %d states, depth %d, %d to go on from\n", name, states, depth, frontier)
		}
	}
}
