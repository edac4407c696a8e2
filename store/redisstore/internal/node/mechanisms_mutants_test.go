//go:build mutants

package node

import "testing"

// TestToRetain fails without the mechanism that it tests. The simulator notices the absence of
// the others.
func TestMechanismsAreNeeded(t *testing.T) {
	retainedIsPlain = false
	wrong := wrongToRetain()
	retainedIsPlain = true
	if len(wrong) != 2 {
		t.Errorf("with releases retained as a whole, the cases %q fail, want 2", wrong)
	}
}
