package main

import (
	"slices"

	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/bench/report"
)

const heldScenario = "held"

// In some scenarios each goroutine has locks of its own, in others all want one lock.
var (
	aloneScenarios      = []string{report.Healthy, report.Awake, report.Frozen, report.Dead, heldScenario}
	contentionScenarios = []string{report.Contended, report.Inside, report.Waiting, report.Far, report.First, report.Shared}
	allScenarios        = slices.Concat(aloneScenarios, contentionScenarios)
)

// any reports whether one of the scenarios is selected.
func (s settings) any(of []string) bool {
	return slices.ContainsFunc(of, func(name string) bool { return s.scenarios[name] })
}

func known(name string) bool { return slices.Contains(allScenarios, name) }

// step is one scenario and its measurements.
type step struct {
	scenario   string
	kinds      []locks.Kind
	goroutines []int
	rounds     int
	awake      bool  // with spinners
	faults     fault // once the clients are open
	servers    int   // how many of the Redis servers there are; 0 for all
	strict     bool  // a measurement that fails ends the run
	beside     *step // measured right after each kind, for comparison
}

// fault is something that happens to the servers.
type fault string

const (
	none      fault = ""
	freezeOne fault = "freeze one"
	killTwo   fault = "kill two"
)

// plan returns the steps of the run, in order.
func (s settings) plan(kinds []locks.Kind) []step {
	five := filter(kinds, func(k locks.Kind) bool { return k.Nodes == 5 && k.Role != locks.Floor })
	ours := filter(kinds, func(k locks.Kind) bool { return k.Nodes == 5 && k.Role == locks.Ours })
	var steps []step
	add := func(st step) {
		if s.scenarios[st.scenario] && len(st.kinds) > 0 {
			steps = append(steps, st)
		}
	}
	add(step{scenario: report.Healthy, kinds: kinds, goroutines: s.goroutines, rounds: s.rounds, strict: true})
	// Sleeping processors matter if there is little to do.
	add(step{scenario: report.Awake, kinds: kinds, goroutines: s.goroutines[:1], rounds: s.rounds, strict: true, awake: true})
	add(step{scenario: report.Frozen, kinds: five, goroutines: s.goroutines[:min(2, len(s.goroutines))], rounds: min(s.rounds, 3), faults: freezeOne})
	add(step{scenario: report.Dead, kinds: five, goroutines: s.goroutines, rounds: s.rounds, faults: killTwo,
		beside: &step{scenario: report.Three, kinds: ours, rounds: s.rounds, servers: 3, strict: true}})
	return steps
}

func filter(kinds []locks.Kind, which func(locks.Kind) bool) []locks.Kind {
	var some []locks.Kind
	for _, k := range kinds {
		if which(k) {
			some = append(some, k)
		}
	}
	return some
}

func has(kinds []locks.Kind, name string) bool {
	return slices.ContainsFunc(kinds, func(k locks.Kind) bool { return k.Name == name })
}
