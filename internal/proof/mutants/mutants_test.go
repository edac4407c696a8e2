//go:build mutants

package mutants

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/holds"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/proof/explore"
	"github.com/leasehold-dev/leasehold/internal/proof/queues"
	"github.com/leasehold-dev/leasehold/internal/proof/sim"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/internal/renewer"
	"github.com/leasehold-dev/leasehold/internal/retain"
	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/internal/waits"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

var only = flag.String("mutant", "", "the one mutant to try")

// tried records, for each mutant that was tried, whether all of its checkers have noticed it.
var tried = map[string]bool{}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	caught := 0
	for _, all := range tried {
		if all {
			caught++
		}
	}
	fmt.Printf("%d mutants, %d caught\n", len(tried), caught)
	os.Exit(code)
}

// noticed records whether a checker has noticed a mutant, which how describes if it has.
func noticed(t *testing.T, name, checker, how string) {
	t.Helper()
	before, again := tried[name]
	tried[name] = how != "" && (before || !again)
	if how == "" {
		fmt.Printf("MISSED %s by the %s\n", name, checker)
		t.Errorf("the %s does not notice that %s is off", checker, name)
		return
	}
	fmt.Printf("caught %s by the %s: %s\n", name, checker, how)
}

func TestSimulatorNotices(t *testing.T) { simulate(t, "simulator", sim.Mutants()) }

func TestCheckOfStepsNotices(t *testing.T) { simulate(t, "check of steps", sim.MutantSteps()) }

func simulate(t *testing.T, checker string, mutants []sim.Mutant) {
	for _, m := range mutants {
		if *only != "" && *only != m.Name {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			how, stale := m.Catch(t)
			if stale && how != "" {
				how += " (record this seed: the recorded one no longer shows it)"
			}
			noticed(t, m.Name, checker, how)
		})
	}
}

func TestExplorerNotices(t *testing.T) {
	for _, r := range explore.Rows() {
		if r.Mutant == "" || *only != "" && *only != r.Mutant {
			continue
		}
		t.Run(r.Mutant+" "+r.Name, func(t *testing.T) {
			if !explore.Switch(r.Off...) {
				t.Fatalf("cannot switch %q off", r.Off)
			}
			defer explore.Switch()
			how := ""
			if found := explore.Search(r.Model, explore.Limits{Workers: 2}); r.Want != 0 && found.Found == r.Want {
				how = fmt.Sprintf("row %s, %v after %d steps, %d states", r.Name, found.Found, found.Depth, found.States)
			}
			noticed(t, r.Mutant, "explorer", how)
		})
	}
}

func TestQueueExplorerNotices(t *testing.T) {
	for _, r := range queues.Rows() {
		name := "queue-" + r.Off
		if r.Off == "" || *only != "" && *only != name {
			continue
		}
		t.Run(name+" "+r.Name, func(t *testing.T) {
			if !queues.Switch(r.Off) {
				t.Fatalf("cannot switch %q off", r.Off)
			}
			defer queues.Switch("")
			how := ""
			if found := queues.Search(r.Model); r.Want != "" && found.Found == r.Want {
				how = fmt.Sprintf("row %s, %s after %d steps, %d states", r.Name, found.Found, len(found.Trace), found.States)
			}
			noticed(t, name, "explorer of queues", how)
		})
	}
}

// byUnitTests has, by package, the mechanisms that its TestMechanismsAreNeeded switches off.
var byUnitTests = map[string][]string{
	"leasehold": {
		"release-detached", "renewal-from-start", "grant-from-since",
		"unwanted-released", "place-kept", "returned-given-up",
	},
	"waitq":  {"one-asker", "place-given-up", "ended-passed-over"},
	"driver": {"decline-unwanted", "undo-own", "discount-each", "uncounted-renewals"},
	"retain": {"retain-refused", "resend-unanswered", "new-run-ends", "skip-untold"},
	"node":   {"retained-is-plain"},
}

// Every mechanism has a checker.
func TestEveryMechanismHasAChecker(t *testing.T) {
	checked := map[string]bool{"owner-per-attempt": true} // the explorer's row D1 has it in its model
	for _, names := range byUnitTests {
		for _, name := range names {
			checked[name] = true
		}
	}
	for _, r := range explore.Rows() {
		for _, name := range r.Off {
			checked[name] = checked[name] || r.Mutant != ""
		}
	}
	bySimulator := map[*bool]bool{}
	for _, m := range sim.Mutants() {
		bySimulator[m.Mechanism()] = true
	}
	for _, of := range []map[string]*bool{
		leasehold.Mechanisms, holds.Mechanisms, waits.Mechanisms, renewer.Mechanisms, waitq.Mechanisms, waitq.QueueMechanisms, leasefsm.Mechanisms,
		quorum.Mechanisms, driver.Mechanisms, retain.Mechanisms, redisstore.Mechanisms,
	} {
		for name, on := range of {
			if !checked[name] && !bySimulator[on] {
				t.Errorf("the mechanism %s has no checker", name)
			}
		}
	}
}

// docs/verification.md names the mechanisms without which the check of steps refuses a step.
func TestMechanismsOfStepsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/verification.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range sim.MutantSteps() {
		if !strings.Contains(string(text), "`"+m.Name+"`") {
			t.Errorf("docs/verification.md does not name %s", m.Name)
		}
	}
}

// The flag -mutant names a mutant that exists.
func TestNameIsAMutant(t *testing.T) {
	if *only != "" && len(tried) == 0 {
		t.Errorf("there is no mutant %q; there are those that -test.v lists without -mutant", strings.TrimSpace(*only))
	}
}
