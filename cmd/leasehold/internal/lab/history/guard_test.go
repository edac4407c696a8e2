package history

import "testing"

// A guard that accepts an older token after a newer one is found, and one that refuses a holder
// in time, but not a refusal of a late write, nor one after an operator has released the lease.
func TestGuard(t *testing.T) {
	for _, c := range []struct {
		name     string
		accepted []int // processes, in order
		refused  int   // when process 1 is refused
		freed    int   // when an operator releases its lease
		want     int
	}{
		{"in order", []int{1, 1, 2, 2}, 0, 0, 0},
		{"an old token after a new one", []int{1, 2, 1}, 0, 0, 1},
		{"refused in time", []int{1}, 500, 0, 1},
		{"refused late", []int{1, 2}, 1500, 0, 0},
		{"refused after an operator came", []int{1, 2}, 500, 400, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory(t)
			s.grant(1, 0, 0, 5, 1000, 10)
			s.grant(2, 0, 1000, 1005, 2000, 11)
			for _, p := range c.accepted {
				s.Guarded = append(s.Guarded, Write{By: ID{Proc: p, Life: 1, N: 1}, Token: s.Attempts[p-1].Token})
			}
			if c.refused > 0 {
				s.add(1, Event{Op: Guarded, At: s.at(c.refused), Done: s.at(c.refused + 1), Err: "stale"})
			}
			if c.freed > 0 {
				s.Attempts[0].Freed = s.at(c.freed)
			}
			if found := s.guard(); len(found) != c.want {
				t.Errorf("found %+v, want %d violations", found, c.want)
			}
		})
	}
}
