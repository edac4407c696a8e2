package sim

import "testing"

// Nodes whose clocks jump are discounted also when most of them do so one soon after
// the other, by as much as each other: that the clients' own clock cannot have done.
func TestMajorityOfClocksThatJumpsIsDiscounted(t *testing.T) {
	blind := Shipped()
	blind.NoClockWatch = true
	harm := 0
	for seed := range uint64(48) {
		s := jumpingTogether(seed)
		if r := Run(t, s, Shipped(), false); len(r.Violations) > 0 {
			report(t, "-script='"+s.String()+"'", s, r)
			return
		}
		if r := Run(t, s, blind, false); len(r.Violations) > 0 {
			harm++
		}
	}
	if harm == 0 {
		t.Error("clocks that jump did no harm: this test proves nothing")
	}
	t.Logf("without looking at the clocks %d of 48 runs have two holders", harm)
}
