package explore

import "testing"

// every demands that all was done that can be in m's world: who came back was placed and
// was not, was claimed, was given up, and was handed the lock before that.
func (d *Deeds) every(t *testing.T, m *Model) {
	t.Helper()
	t.Logf("returned, placed, bare, claimed, dropped, early, yielded: %d", *d)
	for deed := Returned; deed < Yielded; deed++ {
		if d[deed] == 0 {
			t.Errorf("deed %d of a return was never done", deed)
		}
	}
}
