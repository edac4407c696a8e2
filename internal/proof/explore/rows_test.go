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

func two(m *Model) { m.Attempts = 2 }

// suite has the rows that the test suite runs, each with how it makes the model smaller. The
// models of the others are small as they are: with -short they are left to make explore and
// make mutants, of which .ci/run runs both. cmd/explore runs all rows. Rows that switch off a mechanism of the production code run only
// in builds with the tag mutants.
var suite = map[string]func(*Model){
	"A1": nil,
	"A2": nil,
	"A3": func(m *Model) {
		fewer(m)
		m.Spread = 1
	},
	"A3-twice":      func(m *Model) { m.Twice = 1 },
	"A3-propose":    fewer,
	"R2":            fewer,
	"B1":            nil,
	"B2":            fewer,
	"B2''":          nil,
	"R5":            fewer,
	"B5":            fewer,
	"C1":            nil,
	"C2":            nil,
	"C3":            nil,
	"C4":            nil,
	"D2":            fewer,
	"Z1":            nil,
	"Z1-node":       nil,
	"Z1-doubt":      nil,
	"Z1-lost":       nil,
	"Z2":            nil,
	"Z3":            nil,
	"E1":            nil,
	"E1-order":      nil,
	"M3":            fewer,
	"M3-twice":      func(m *Model) { m.Renewals, m.Twice = 1, 1 },
	"E5":            func(m *Model) { m.Renewals = 1 },
	"E5-orphan":     nil,
	"E2":            nil,
	"E3":            fewer,
	"V1":            func(m *Model) { m.Attempts = 1 },
	"V1-renew":      nil,
	"V1-half":       nil,
	"X1":            func(m *Model) { m.Attempts = 1 },
	"X1-late":       nil,
	"H1":            nil,
	"H1-off":        nil,
	"RW1":           nil,
	"RW2":           nil,
	"RW3":           nil,
	"S1":            nil,
	"S1-two":        nil,
	"S1-orphan":     nil,
	"S1-bury":       nil,
	"S2":            nil,
	"S3":            nil,
	"S1-full":       nil,
	"S4":            nil,
	"S4-full":       nil,
	"W1":            func(m *Model) { m.Asks = 1 },
	"W1-late":       two,
	"W1-renew":      two,
	"W1-crash":      two,
	"W2":            func(m *Model) { m.Asks = 1 },
	"W3":            func(m *Model) { m.Asks, m.TTL, m.Patience = 2, 1, 1 },
	"W4":            two,
	"W4-renew":      two,
	"W5":            func(m *Model) { m.Asks = 1 },
	"W5-crash":      nil,
	"W5-every":      nil,
	"W6":            func(m *Model) { m.TTL, m.Patience = 1, 1 },
	"W5-orphan":     func(m *Model) { m.Asks = 1 },
	"W6-late":       nil,
	"W6-crash":      nil,
	"W6-rank":       nil,
	"W6-again":      nil,
	"W6-three":      func(m *Model) { m.TTL, m.Patience = 1, 1 },
	"W6-orphan":     nil,
	"W6-alone":      nil,
	"W6-whole":      nil,
	"W-time":        nil,
	"W-pushed":      nil,
	"W-same":        nil,
	"W-quarantined": nil,
	"W-tomb":        nil,
	"W-bury":        nil,
	"W-place":       nil,
	"W-way":         nil,
	"BR1":           nil,
	"BR1-renew":     nil,
	"BR1-crash":     nil,
	"BR2":           nil,
	"BR3":           nil,
	"BR4":           nil,
	"BR4-short":     nil,
}

// Every row has its verdict: what must hold, holds in every state, and what must break is
// found broken.
func TestVerdicts(t *testing.T) {
	for _, row := range Rows() {
		shrink, runs := suite[row.Name]
		if !runs || shrink == nil && testing.Short() {
			continue
		}
		if len(row.Off) > 0 && !Switch(row.Off...) {
			continue // it runs only with the tag mutants
		}
		t.Run(row.Name, func(t *testing.T) {
			defer Switch()
			m := row.Model
			if shrink != nil {
				shrink(&m)
			}
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
