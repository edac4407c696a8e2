//go:build mutants

package waitq

import (
	"maps"
	"testing"
)

// Each mechanism is needed: without it the search finds a broken invariant.
func TestMechanismsAreNeeded(t *testing.T) {
	all := maps.Clone(Mechanisms)
	maps.Copy(all, QueueMechanisms)
	for name, on := range all {
		t.Run(name, func(t *testing.T) {
			*on = false
			defer func() { *on = true }()
			err := searched(20000)
			if err == nil {
				t.Error("the search found no broken invariant, want one")
			}
			t.Log(err)
		})
	}
}
