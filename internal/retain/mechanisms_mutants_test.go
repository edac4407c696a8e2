//go:build mutants

package retain

import "testing"

// Without any one of the mechanisms the walks or the examples find something wrong.
func TestMechanismsAreNeeded(t *testing.T) {
	for name, on := range Mechanisms {
		*on = false
		wrong := explore()
		*on = true
		if wrong == "" {
			t.Errorf("nothing is wrong without %s", name)
		} else {
			t.Logf("without %s: %s", name, wrong)
		}
	}
}
