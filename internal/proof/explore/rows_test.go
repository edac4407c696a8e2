package explore

import (
	"slices"
	"strings"
	"testing"
)

// fewer makes a model small enough for the test suite.
func fewer(m *Model) {
	m.Attempts, m.Spread, m.Renewals, m.Crashes = 2, 0, min(m.Renewals, 1), min(m.Crashes, 1)
}

func asIs(*Model) {}

func two(m *Model) { m.Attempts = 2 }

// suite has the rows that the test suite runs, each with how it makes the model smaller.
// cmd/explore runs all rows. Rows that switch off a mechanism of the production code run only
// in builds with the tag mutants.
var suite = map[string]func(*Model){
	"A1": asIs,
	"A2": asIs,
	"A3": func(m *Model) {
		fewer(m)
		m.Spread = 1
	},
	"A3-twice":      func(m *Model) { m.Twice = 1 },
	"A3-propose":    fewer,
	"R2":            fewer,
	"B1":            asIs,
	"B2":            fewer,
	"B2''":          asIs,
	"R5":            fewer,
	"B5":            fewer,
	"C1":            asIs,
	"C2":            asIs,
	"C3":            asIs,
	"C4":            asIs,
	"D2":            fewer,
	"Z1":            asIs,
	"Z1-node":       asIs,
	"Z1-doubt":      asIs,
	"Z1-lost":       asIs,
	"Z2":            asIs,
	"Z3":            asIs,
	"E1":            asIs,
	"E1-order":      asIs,
	"M3":            fewer,
	"M3-twice":      func(m *Model) { m.Renewals, m.Twice = 1, 1 },
	"E5":            func(m *Model) { m.Renewals = 1 },
	"E5-orphan":     asIs,
	"E2":            asIs,
	"E3":            fewer,
	"V1":            func(m *Model) { m.Attempts = 1 },
	"V1-renew":      asIs,
	"V1-half":       asIs,
	"X1":            func(m *Model) { m.Attempts = 1 },
	"X1-late":       asIs,
	"H1":            asIs,
	"H1-off":        asIs,
	"RW1":           asIs,
	"RW2":           asIs,
	"RW3":           asIs,
	"S1":            asIs,
	"S1-two":        asIs,
	"S1-orphan":     asIs,
	"S1-bury":       asIs,
	"S2":            asIs,
	"S3":            asIs,
	"S1-full":       asIs,
	"S4":            asIs,
	"S4-full":       asIs,
	"W1":            func(m *Model) { m.Asks = 1 },
	"W1-late":       two,
	"W1-renew":      two,
	"W1-crash":      two,
	"W2":            func(m *Model) { m.Asks = 1 },
	"W3":            func(m *Model) { m.Asks, m.TTL, m.Patience = 2, 1, 1 },
	"W4":            two,
	"W4-renew":      two,
	"W5":            func(m *Model) { m.Asks = 1 },
	"W5-crash":      asIs,
	"W5-every":      asIs,
	"W6":            func(m *Model) { m.TTL, m.Patience = 1, 1 },
	"W5-orphan":     func(m *Model) { m.Asks = 1 },
	"W6-late":       asIs,
	"W6-crash":      asIs,
	"W6-rank":       asIs,
	"W6-again":      asIs,
	"W6-three":      func(m *Model) { m.TTL, m.Patience = 1, 1 },
	"W6-orphan":     asIs,
	"W6-alone":      asIs,
	"W6-whole":      asIs,
	"W-time":        asIs,
	"W-pushed":      asIs,
	"W-same":        asIs,
	"W-quarantined": asIs,
	"W-tomb":        asIs,
	"W-bury":        asIs,
	"W-place":       asIs,
	"W-way":         asIs,
	"BR1":           asIs,
	"BR1-renew":     asIs,
	"BR1-crash":     asIs,
	"BR2":           asIs,
	"BR3":           asIs,
	"BR4":           asIs,
	"BR4-short":     asIs,
}

// Every row has its verdict: what must hold, holds in every state, and what must break is
// found broken.
func TestVerdicts(t *testing.T) {
	for _, row := range Rows() {
		shrink := suite[row.Name]
		if shrink == nil {
			continue
		}
		if len(row.Off) > 0 && !Switch(row.Off...) {
			continue // it runs only with the tag mutants
		}
		t.Run(row.Name, func(t *testing.T) {
			defer Switch()
			m := row.Model
			shrink(&m)
			r := Search(m, Limits{Workers: 2})
			t.Logf("%v: %d states, depth %d, %v", r.Found, r.States, r.Depth, r.Took)
			if r.Found != row.Want {
				t.Errorf("%s: found %v, want %v\n%s", row.What, r.Found, row.Want, strings.Join(r.Trace, "\n"))
			}
			for _, action := range row.Reach {
				if r.Actions[action] == 0 {
					t.Errorf("the action %v was on no searched path, want it reached", action)
				}
			}
			if r.Found == 0 && !r.Complete {
				t.Error("the search is incomplete, want every state visited")
			}
			if r.Found != 0 && (len(r.Trace) < 2 || !strings.Contains(strings.Join(r.Trace, "\n"), r.Found.String()+":")) {
				t.Errorf("the trace does not end with %v:\n%s", r.Found, strings.Join(r.Trace, "\n"))
			}
		})
	}
}

// The rows that suite names exist.
func TestSuiteNamesRows(t *testing.T) {
	for name := range suite {
		if !slices.ContainsFunc(Rows(), func(r Row) bool { return r.Name == name }) {
			t.Errorf("there is no row %q", name)
		}
	}
}
