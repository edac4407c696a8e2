package explore

import "testing"

// The code as it ships keeps every promise in the first states of some worlds.
// The whole of them, and larger ones, are for cmd/explore: minutes, not seconds.
func TestAsShipped(t *testing.T) {
	for name, m := range map[string]Model{
		"acquire and release":      world(2, func(m *Model) { m.Spread = 1 }),
		"no clock at all":          world(2, func(m *Model) { m.NoTime, m.Check = true, Tokens }),
		"renewals":                 world(2, func(m *Model) { m.Renewals = 1 }),
		"late acquires, no orphan": world(2, func(m *Model) { m.Check, m.MaxDelay = Orphans, 1 }),
	} {
		t.Run(name, func(t *testing.T) {
			r := Search(m, Limits{Workers: 2, States: 20000})
			if r.Found != 0 {
				t.Errorf("found %v after %d states", r.Found, r.States)
				for _, line := range r.Trace {
					t.Log(line)
				}
			}
			t.Logf("%d states, depth %d", r.States, r.Depth)
		})
	}
}
