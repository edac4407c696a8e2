//go:build mutants

package sim

import (
	"flag"
	"testing"
)

var only = flag.String("mutant", "", "the one mutant to try")

func TestMutants(t *testing.T) {
	for _, m := range Mutants() {
		if *only != "" && *only != m.Name {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			if how, caught := m.Catch(t, *seeds); caught {
				t.Logf("%s: %s", m.Name, how)
			} else {
				t.Errorf("not noticed in %d seeds", *seeds)
			}
		})
	}
}
