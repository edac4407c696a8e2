//go:build mutants

package majority

import "testing"

// Without the mechanism a node keeps what nobody wants.
func TestMechanismsAreNeeded(t *testing.T) {
	declineUnwanted = false
	defer func() { declineUnwanted = true }()
	if got := lateHand(t); len(got) != 0 {
		t.Errorf("the node is told %q", got)
	}
}
