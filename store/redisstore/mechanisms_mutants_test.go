//go:build mutants

package redisstore

import "testing"

// Without the mechanism TestToRetain finds what it looks for. The simulator notices the
// others.
func TestMechanismsAreNeeded(t *testing.T) {
	retainedIsPlain = false
	wrong := wrongToRetain()
	retainedIsPlain = true
	if len(wrong) != 2 {
		t.Errorf("what is retained of a release is the whole of it, and found wrong are %q", wrong)
	}
}
