//go:build mutants

package retain

import "testing"

// Without any one of the mechanisms, a walk finds something wrong.
func TestMechanismsAreNeeded(t *testing.T) {
	for name, on := range Mechanisms {
		*on = false
		wrong := explore()
		*on = true
		if wrong == "" {
			t.Errorf("without %s no walk finds anything wrong", name)
		} else {
			t.Logf("without %s: %s", name, wrong)
		}
	}
}
