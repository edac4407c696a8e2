//go:build mutants

package explore

import (
	"slices"
	"strings"
	"testing"
)

// With a mechanism off, the violation it prevents is found: a checker that
// never fails proves nothing. The larger of these searches are in cmd/explore
// only.
func TestViolationsAreFound(t *testing.T) {
	quick := strings.Fields("B1 B2'' C2 C3 E1 E1-order Z1 Z1-node Z3 E5-orphan")
	for _, row := range Rows() {
		if !slices.Contains(quick, row.Name) {
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			if !Switch(row.Off...) {
				t.Fatalf("can not switch %q off", row.Off)
			}
			defer Switch()
			r := Search(row.Model, Limits{Workers: 2})
			if r.Found != row.Want || len(r.Trace) < 3 {
				t.Errorf("%s: found %v in %d states, want %v; trace %q", row.What, r.Found, r.States, row.Want, r.Trace)
			}
		})
	}
}
