package sim

import "testing"

// A lease held for 100 TTLs through rolling restarts is not lost.
func TestRollingRestarts(t *testing.T) {
	s := rolling()
	r := Run(t, s, Shipped(), false)
	if len(r.Violations) > 0 {
		report(t, "-script='"+s.String()+"'", s, r)
	}
	if r.Tally.Heals < 20 {
		t.Errorf("only %d nodes were healed", r.Tally.Heals)
	}
}
