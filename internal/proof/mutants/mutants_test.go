//go:build mutants

package mutants

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/proof/explore"
	"github.com/leasehold-dev/leasehold/internal/proof/sim"
)

var (
	only = flag.String("mutant", "", "the one mutant to try")
	most = flag.Int("most", 1000, "how many seeds the simulator may need")
)

var tried, caught int

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	fmt.Printf("%d mutants, %d caught\n", tried, caught)
	os.Exit(code)
}

// names returns the names of all mutants that either checker can make, sorted.
func names() (all []string) {
	for _, m := range sim.Mutants() {
		all = append(all, m.Name)
	}
	for _, r := range explore.Rows() {
		if r.Mutant != "" {
			all = append(all, r.Mutant)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestMutants(t *testing.T) {
	for _, name := range names() {
		if *only != "" && *only != name {
			continue
		}
		t.Run(name, func(t *testing.T) {
			tried++
			how := catch(t, name)
			if how == "" {
				fmt.Printf("MISSED %s\n", name)
				t.Errorf("neither the explorer nor %d seeds of the simulator notice that %s is off", *most, name)
				return
			}
			caught++
			fmt.Printf("caught %s by %s\n", name, how)
		})
	}
	if tried == 0 {
		t.Fatalf("there is no mutant %q: there are %q", *only, names())
	}
}

// catch returns which checker notices the mutant and how, or "" if none does. It tries
// a few seeds first, then a search, which is slower, and then many seeds.
func catch(t *testing.T, name string) string {
	if how := simulate(t, name, min(20, *most)); how != "" {
		return how
	}
	if how := search(t, name); how != "" {
		return how
	}
	return simulate(t, name, *most)
}

func simulate(t *testing.T, name string, seeds int) string {
	for _, m := range sim.Mutants() {
		if m.Name != name {
			continue
		}
		if how, ok := m.Catch(t, seeds); ok {
			return "simulator: " + how
		}
	}
	return ""
}

func search(t *testing.T, name string) string {
	for _, r := range explore.Rows() {
		if r.Mutant != name {
			continue
		}
		if !explore.Switch(r.Off...) {
			t.Fatalf("%s: cannot switch %q off", r.Name, r.Off)
		}
		found := explore.Search(r.Model, explore.Limits{Workers: 2})
		explore.Switch()
		if found.Found == r.Want && r.Want != 0 {
			return fmt.Sprintf("explorer: row %s, %v after %d steps, %d states", r.Name, found.Found, found.Depth, found.States)
		}
	}
	return ""
}

// The checkers find nothing if nothing is off, so their verdicts are about the mutants.
func TestNothingIsOff(t *testing.T) {
	if how, noticed := (sim.Mutant{Name: "none"}).Catch(t, 20); noticed {
		t.Errorf("with nothing off: %s", how)
	}
}
